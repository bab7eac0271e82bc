"""Running a compiled library from Python."""

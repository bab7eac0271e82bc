"""From C source to a shared library: the compiler, and a cache of what it made."""

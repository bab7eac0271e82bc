"""The fxlite graph as a functional graph of ATen operators."""

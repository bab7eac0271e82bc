"""What must hold for a compiled graph to be reused, and the checkers that see to it."""

if __name__ != "dynacap.guards":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.guards, not as guards")

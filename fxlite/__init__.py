"""The graph: nodes, graph, graph module, interpreter, passes, printers."""

if __name__ != "dynacap.fxlite":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.fxlite, not as fxlite")

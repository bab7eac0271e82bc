"""What runs a graph: ``backend(graph_module, example_inputs) -> callable``."""

if __name__ != "dynacap.backends":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.backends, not as backends")

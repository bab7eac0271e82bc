"""Handlers for functions and methods written in C; importing this package registers them all.

What is left without a handler of its own may be pure, which comes last.
"""

from dynacap.values.library import (
    attributes,
    classes,
    deques,
    dict_views,
    dicts,
    effects,
    exceptions,
    functional,
    functions,
    generators,
    immutables,
    iteration,
    iterators,
    lists,
    numbers,
    operators,
    patterns,
    proxies,
    records,
    sequences,
    sets,
    signatures,
    templates,
    text,
    tuples,
)

__all__ = [
    "attributes",
    "classes",
    "deques",
    "dict_views",
    "dicts",
    "effects",
    "exceptions",
    "functional",
    "functions",
    "generators",
    "immutables",
    "iteration",
    "iterators",
    "lists",
    "numbers",
    "operators",
    "patterns",
    "proxies",
    "pure",
    "records",
    "sequences",
    "sets",
    "signatures",
    "templates",
    "text",
    "tuples",
]

from dynacap.values.library import pure  # isort: skip

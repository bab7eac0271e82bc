"""Handlers for the functions of torch that are no operations; importing it registers them."""

from dynacap.values.torch_library import (
    autograd_function,
    dynamo,
    modules,
    objects,
    questions,
    refused,
    state,
    training,
    vmap,
)

__all__ = [
    "autograd_function",
    "dynamo",
    "modules",
    "objects",
    "questions",
    "refused",
    "state",
    "training",
    "vmap",
]

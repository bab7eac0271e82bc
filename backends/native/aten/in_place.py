"""The functional form of an operator that changes its first argument."""

from __future__ import annotations

from typing import Any

import torch

Op = torch._ops.OpOverload


class NotFunctional(Exception):
    """The graph changes something in a way that AOTAutograd has to take apart, if anything can."""


_FORMS = {
    "bernoulli_.float": "bernoulli.p",
    "normal_.default": "normal_functional.default",
}


def functional_form(func: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """The operator that returns what ``func`` would leave in its first argument, and its
    arguments: all that have a position, since defaults may differ."""
    schema = func._schema
    first = schema.arguments[0] if schema.arguments else None
    changed = [arg for arg in schema.arguments if arg.alias_info and arg.alias_info.is_write]
    if changed != [first] or not isinstance(args[0], torch.Tensor):
        raise NotFunctional(f"{func} changes more than its first argument")
    if torch.Tag.inplace_view in func.tags or not func.overloadpacket.__name__.endswith("_"):
        raise NotFunctional(f"{func} changes more than elements")
    packet_name, overload = func.overloadpacket.__name__.removesuffix("_"), func._overloadname
    name = f"{packet_name}_.{overload}"
    packet_name, overload = _FORMS.get(name, f"{packet_name}.{overload}").split(".")
    namespace = getattr(torch.ops, func.namespace)
    found = getattr(getattr(namespace, packet_name, None), overload, None)
    if found is None or found._schema.is_mutable:
        raise NotFunctional(f"{func} has no functional form")
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    return found, (*args, *(each.default_value for each in positional[len(args) :]))

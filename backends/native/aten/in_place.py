"""The functional form of an operator that changes its first argument."""

from __future__ import annotations

import functools
from typing import Any

import torch

Op = torch._ops.OpOverload


class NotFunctional(Exception):
    """The graph changes something in a way that AOTAutograd has to take apart, if anything can."""


# Where it has another name.
_FORMS = {"bernoulli_.float": "bernoulli.p", "normal_.default": "normal_functional.default"}


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
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    return _form(func), (*args, *(each.default_value for each in positional[len(args) :]))


def view_form(func: Op) -> Op:
    """The operator that gives the view which ``func`` makes of its argument itself."""
    form = _form(func) if func.overloadpacket.__name__.endswith("_") else None
    if form is None or not any(each.alias_info for each in form._schema.returns):
        raise NotFunctional(f"{func} changes more than elements")
    return form


@functools.cache
def _form(func: Op) -> Op:
    packet_name = func.overloadpacket.__name__
    renamed = _FORMS.get(f"{packet_name}.{func._overloadname}")
    packet_name, _, overload = (renamed or packet_name.removesuffix("_")).partition(".")
    packet = getattr(getattr(torch.ops, func.namespace), packet_name, None)
    # pow_.Scalar is pow.Tensor_Scalar, and pow.Scalar is something else.
    for name in [overload] if overload else getattr(packet, "overloads", list)():
        found: Op = getattr(packet, name)
        if not found._schema.is_mutable and (overload or _takes(found) == _takes(func)):
            return found
    raise NotFunctional(f"{func} has no functional form")


def _takes(func: Op) -> list[tuple[str, bool]]:
    return [(str(argument.type), argument.kwarg_only) for argument in func._schema.arguments]

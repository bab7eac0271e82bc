"""Scalar operations as C: by template where C has an operator, by function of the prelude else."""

from __future__ import annotations

import torch

from dynacap.backends.native.c.types import COMPUTED, cast, suffix

_ANY = {
    "where": "({0} ? {1} : {2})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "lt": "({0} < {1})",
    "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})",
    "isnan": "({0} != {0})",
}  # fmt: skip
_ARITHMETIC = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "neg": "(-{0})",
    "square": "({0} * {0})",
}  # fmt: skip
_FLOAT = {
    **_ARITHMETIC,
    "div": "({0} / {1})", "reciprocal": "(1 / {0})",
}  # fmt: skip
_INTEGER = {
    "and": "({0} & {1})", "or": "({0} | {1})", "xor": "({0} ^ {1})", "not": "(~{0})",
    "isinf": "false",
}  # fmt: skip
_BOOL = {
    "and": "({0} & {1})", "or": "({0} | {1})", "xor": "({0} ^ {1})", "not": "(!{0})",
    "add": "({0} | {1})", "mul": "({0} & {1})", "maximum": "({0} | {1})", "minimum": "({0} & {1})",
}  # fmt: skip
# C's own operators promote to int, so that what is narrower is brought back.
_NARROW = frozenset({torch.uint8, torch.int8, torch.int16})
_BUILTIN = frozenset({"sqrt", "floor", "ceil", "trunc", "rint", "fabs", "fma", "copysign"})

FOLDS = {
    "sum": "{0} + {1}", "prod": "{0} * {1}", "any": "{0} | {1}", "all": "{0} & {1}",
    "most": "{1} > {0} ? {1} : {0}",
}  # fmt: skip
_CLAUSES = {"sum": "+", "prod": "*", "any": "|", "all": "&", "most": "max"}


def operation(name: str, args: list[str], dtype: torch.dtype, of: torch.dtype) -> str:
    """The C expression of an operation on operands of dtype ``of``; ``dtype`` is the result's."""
    if name == "cast":
        return cast(args[0], of, dtype)
    template = _template(name, of)
    if template is None:
        return f"{name}_{suffix(of)}({', '.join(args)})"
    text = template.format(*args)
    return f"({COMPUTED[dtype]}){text}" if dtype in _NARROW else text


def _template(name: str, of: torch.dtype) -> str | None:
    if name in _ANY:
        return _ANY[name]
    if of.is_floating_point:
        end = "" if of is torch.float64 else "f"
        if name in _BUILTIN:
            return f"__builtin_{name}{end}({_slots(name)})"
        return _FLOAT.get(name)
    return _BOOL.get(name) if of is torch.bool else {**_ARITHMETIC, **_INTEGER}.get(name)


def _slots(name: str) -> str:
    count = {"fma": 3, "copysign": 2}.get(name, 1)
    return ", ".join(f"{{{n}}}" for n in range(count))


def combine(combiner: str, total: str, value: str, dtype: torch.dtype) -> str:
    """One step of a reduction."""
    if combiner in FOLDS:
        text = FOLDS[combiner].format(total, value)
        return f"({COMPUTED[dtype]})({text})" if dtype in _NARROW else text
    return operation({"max": "maximum", "min": "minimum"}[combiner], [value, total], dtype, dtype)


def clause(combiner: str, total: str, dtype: torch.dtype) -> str:
    """The reduction clause of a vector loop."""
    name = _CLAUSES.get(combiner) or (
        combiner if not dtype.is_floating_point else f"{combiner}imum_{suffix(dtype)}"
    )
    return f"reduction({name}:{total})"

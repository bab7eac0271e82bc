"""Regular expressions on constant text; patterns and matches never change."""

from __future__ import annotations

import re
from typing import Any

from dynacap.values.base import Value
from dynacap.values.build import build_known, builds
from dynacap.values.data_model.calls import fold
from dynacap.values.natives import native, pure
from dynacap.values.tracer import Tracer

builds(re.Pattern, re.Match)(build_known)
pure(
    member
    for kind in (re.Pattern, re.Match)
    for name, member in vars(kind).items()
    if callable(member) and name not in ("finditer", "scanner", "__class_getitem__")
)


def _register(function: Any) -> None:
    @native(function)
    def run(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        done = fold(t, function, args, kwargs)
        if done is None:
            described = ", ".join(arg.describe() for arg in args)
            t.graph_break("not-constant", f"re.{function.__name__} of {described}")
        return done


for _name in "compile match search fullmatch findall split sub subn escape".split():
    _register(getattr(re, _name))

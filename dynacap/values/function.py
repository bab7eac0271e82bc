"""Functions: those from outside, those made inside, bound methods and suspended generators."""

from __future__ import annotations

import types
from typing import Any

from dynacap.guards.source import Source
from dynacap.values.base import Known, NotConstant, Value
from dynacap.values.container import DictValue
from dynacap.values.object import CellValue


class FunctionValue(Value):
    """A Python function.

    From outside: ``real`` is the function; its code is guarded when it is called.  Made inside:
    ``code``, ``globals_of`` (the function whose globals it shares), defaults and cells are values.
    """

    __slots__ = (
        "annotations",
        "attrs",
        "cells",
        "code",
        "defaults",
        "fields",
        "globals_of",
        "guarded",
        "kwdefaults",
        "name",
        "qualname",
        "real",
    )

    def __init__(
        self, code: types.CodeType, real: Any = None, source: Source | None = None
    ) -> None:
        self.source = source
        self.real: types.FunctionType | None = real
        self.code = code
        self.globals_of: FunctionValue = self
        self.name = real.__name__ if real is not None else code.co_name
        self.qualname = real.__qualname__ if real is not None else code.co_qualname
        self.defaults: Value | None = None  # a TupleValue, only for those made inside
        self.kwdefaults: DictValue | None = None
        self.annotations: Value | None = None
        self.cells: list[CellValue] | None = None
        self.attrs: DictValue | None = None
        self.fields: dict[str, Value] = {}  # name, doc and their kin, where set here
        self.guarded = False

    @property
    def cls(self) -> type:
        return types.FunctionType

    def release(self) -> None:
        self.real = self.cells = self.attrs = None
        del self.globals_of  # most often itself

    def constant(self) -> Any:
        if self.real is not None and self.source is None:
            return self.real
        raise NotConstant(self)

    def describe(self) -> str:
        return self.qualname


class BoundMethod(Value):
    """A function or C method together with its first argument."""

    __slots__ = ("func", "obj")

    def __init__(self, func: Value, obj: Value, source: Source | None = None) -> None:
        self.source = source
        self.func = func
        self.obj = obj

    @property
    def cls(self) -> type:
        if type(self.func) is Known and not isinstance(self.func.value, types.MethodType):
            kind = type(self.func.value)
            if kind is types.WrapperDescriptorType:
                return types.MethodWrapperType
            if kind in (types.MethodDescriptorType, types.ClassMethodDescriptorType):
                return types.BuiltinMethodType
        return types.MethodType

    def describe(self) -> str:
        return f"{self.obj.describe()}.{self.func.describe()}"


class GeneratorValue(Value):
    """A generator made inside: an executor frame that has been put aside.

    ``state`` is "new", "suspended", "running" or "done"; ``level`` the nested loop that it belongs
    to (see the executor's finalizers).  ``handled`` is the exception that it is handling itself,
    ``outer`` the one that whoever resumed it is.
    """

    __slots__ = ("frame", "function", "handled", "level", "outer", "state")

    def __init__(self, function: FunctionValue, frame: Any) -> None:
        self.source = None
        self.function = function
        self.frame = frame
        self.level = 0
        self.handled: Value | None = None
        self.outer: Value | None = None
        self.state = "new"

    @property
    def cls(self) -> type:
        return types.GeneratorType

"""Functions: those from outside, those made inside, bound methods and suspended generators."""

from __future__ import annotations

import types
from dataclasses import field
from typing import Any, ClassVar

from dynacap.values.base import Known, NotConstant, Value, fields
from dynacap.values.container import DictValue
from dynacap.values.object import CellValue


@fields
class FunctionValue(Value):
    """A Python function.

    From outside: ``real`` is the function; its code is guarded when it is called.  Made inside:
    ``code``, ``globals_of`` (the function whose globals it shares), defaults and cells are values.
    """

    cls: ClassVar[type] = types.FunctionType
    code: types.CodeType
    real: Any = None
    defaults: Value | None = None  # a TupleValue, only for those made inside
    kwdefaults: DictValue | None = None
    annotations: Value | None = None
    cells: list[CellValue] | None = None
    attrs: DictValue | None = None
    fields: dict[str, Value] = field(default_factory=dict)  # name, doc and their kin, if set here
    guarded: bool = False
    globals_of: FunctionValue = field(init=False)
    name: str = field(init=False)
    qualname: str = field(init=False)

    def __post_init__(self) -> None:
        self.globals_of = self
        self.name = self.code.co_name if self.real is None else self.real.__name__
        self.qualname = self.code.co_qualname if self.real is None else self.real.__qualname__

    def release(self) -> None:
        self.real = self.cells = self.attrs = None
        del self.globals_of  # most often itself

    def constant(self) -> Any:
        if self.real is not None and self.source is None:
            return self.real
        raise NotConstant(self)

    def describe(self) -> str:
        return self.qualname


@fields
class BoundMethod(Value):
    """A function or C method together with its first argument."""

    func: Value
    obj: Value

    @property
    def cls(self) -> type:
        if type(self.func) is Known and not isinstance(self.func.value, types.MethodType):
            kind = type(self.func.value)
            if kind is types.WrapperDescriptorType:
                return types.MethodWrapperType
            if kind in (types.MethodDescriptorType, types.ClassMethodDescriptorType):
                return types.BuiltinMethodType
        return types.MethodType

    def constant(self) -> Any:
        """A slot of what is known, such as ``Tensor.shape.__get__``: another object each time."""
        if self.cls is types.MethodWrapperType and type(self.obj) is Known:
            return self.func.constant().__get__(self.obj.value)
        raise NotConstant(self)

    def describe(self) -> str:
        return f"{self.obj.describe()}.{self.func.describe()}"


@fields
class GeneratorValue(Value):
    """A generator or coroutine made inside: an executor frame that has been put aside.

    ``state`` is "new", "suspended", "running" or "done", or "outside" where it is not known yet.
    ``level`` is the nested loop that it belongs to (see the executor's finalizers), ``handled`` the
    exception that it is handling itself, ``outer`` the one that whoever resumed it is.
    """

    function: Any  # the function's value, and the executor's frame; None where it is over
    frame: Any
    cls: type = types.GeneratorType
    level: int = 0
    handled: Value | None = None
    outer: Value | None = None
    state: str = "new"
    real: Any = None  # the generator, if it is from outside

    def release(self) -> None:
        self.real = self.frame = None

"""Backward passes that the program wrote: of ``torch.autograd.Function`` and of custom operators.

AOTAutograd runs their code once, when it traces a graph, and keeps the operators that it saw.  That
is as good as running it each time only for code that does nothing but compute, of its arguments and
of what does not change.  So the code is read: what it takes from outside is compared at each use of
the graph, and code of which not enough can be told keeps the graph from being compiled.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch.autograd import Function

from dynacap.fxlite import Graph, Node

_PLAIN = (int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout)
_COMPUTE = frozenset(
    """abs all any bool complex dict divmod enumerate float frozenset int isinstance issubclass len
    list map max min pow range reversed round set slice sorted str sum tuple type zip""".split()
)
_LIBRARIES = frozenset(("torch", "math", "_operator", "operator"))
_CHANGES = frozenset("STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME".split())
_CELLS = frozenset("LOAD_DEREF LOAD_CLASSDEREF STORE_DEREF DELETE_DEREF".split())


class Reads:
    """What the backward passes of a graph's functions read from outside, as it was first."""

    def __init__(self, graph: Graph) -> None:
        self.refused = ""
        self._seen: set[Any] = set()
        self._kept: list[tuple[Callable[[], Any], Any]] = []
        for node in graph.nodes:
            cls = getattr(node.target, "__self__", None)
            if _is_function(cls):
                if not all(map(_is_plain, node.args)):
                    self._refuse(cls, "is given an object")
                self._add_class(cls)
            for function in _of_operator(node.target):
                self._add_function(function)

    def changed(self) -> bool:
        """Whether one of these is another one now."""
        return any(read() is not before for read, before in self._kept)

    def _refuse(self, by: Any, what: str) -> None:
        self.refused = self.refused or f"{by.__qualname__} {what}"

    def _add_class(self, cls: Any) -> None:
        for name in ("forward", "setup_context", "backward", "vjp"):
            if (function := getattr(cls, name)) is not getattr(Function, name):
                self._add_function(function)

    def _add_function(self, function: Any) -> None:
        function = inspect.unwrap(function, stop=lambda wrapper: not _is_known(wrapper))
        if not isinstance(function, types.FunctionType):
            self._refuse(function, "is no plain function")
        elif function not in self._seen and not _is_known(function):
            self._seen.add(function)
            code = function.__code__
            closure = function.__closure__ or ()
            cells = dict(zip(code.co_freevars, closure, strict=True))
            for inner in _with_inner(code):
                self._add_code(function, inner, cells)

    def _add_code(self, function: Any, code: types.CodeType, cells: dict[str, Any]) -> None:
        codes = [at for at in dis.get_instructions(code) if at.opname != "PUSH_NULL"]
        for index, at in enumerate(codes):
            cell = cells.get(at.argval) if at.opname in _CELLS else None
            if cell is not None and not at.opname.startswith("LOAD"):
                self._refuse(function, f"changes {at.argval}")
            elif at.opname in _CHANGES and not _is_of_context(code, codes[index - 1]):
                self._refuse(function, f"changes or imports {at.argval}")
            elif cell is not None:
                self._add_read(function, partial(getattr, cell, "cell_contents"), codes[index:])
            elif at.opname == "LOAD_GLOBAL":
                first = partial(_of_globals, function.__globals__, at.argval)
                self._add_read(function, first, codes[index:])

    def _add_read(self, function: Any, read: Callable[[], Any], codes: list[Any]) -> None:
        """A value, and what attributes the code asks it for as far as modules and classes go."""
        value = self._keep(read)
        for at in codes[1:]:
            known = isinstance(value, types.ModuleType | type)
            if at.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not known:
                break
            if at.argval == "apply" and _is_function(value):
                return self._add_class(value)
            value = self._keep(partial(getattr, value, at.argval, None))
        if isinstance(value, types.FunctionType):
            self._add_function(value)
        elif not _is_plain(value) and not _is_known(value):
            self._refuse(function, f"uses {codes[0].argval}")
        return None

    def _keep(self, read: Callable[[], Any]) -> Any:
        value = read()
        if value is read():  # else it is made for each that asks
            self._kept.append((read, value))
        return value


def _of_operator(target: Any) -> Iterator[Any]:
    """What a custom operator does for the sake of a backward pass."""
    name = getattr(target, "_qualified_op_name", None) or getattr(target, "_name", None)
    made = target if isinstance(target, CustomOpDef) else OPDEFS.get(name)
    functions = (made._setup_context_fn, made._backward_fn) if made is not None else ()
    yield from (each for each in functions if each is not None)


def _of_globals(space: dict[str, Any], name: str) -> Any:
    return space[name] if name in space else getattr(builtins, name, None)


def _is_function(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, Function) and not _is_known(cls)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, (*_PLAIN, Node))


def _is_known(value: Any) -> bool:
    """Whether it computes, as far as it is called, and is torch's or Python's."""
    if isinstance(value, types.FunctionType):  # a wrapper may have the name of what it wraps
        return _is_of_library(value.__globals__.get("__name__"))
    if isinstance(value, torch._ops.OperatorBase | types.ModuleType):
        return True
    if not isinstance(value, type | types.BuiltinFunctionType | types.MethodDescriptorType):
        return False
    if getattr(value, "__module__", None) == "builtins":
        of_errors = isinstance(value, type) and issubclass(value, BaseException)
        return of_errors or value.__name__ in _COMPUTE
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    place = getattr(value, "__module__", None) or getattr(owner, "__module__", None)
    return _is_of_library(place or getattr(owner, "__name__", None))


def _is_of_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _is_of_context(code: types.CodeType, before: Any) -> bool:
    """Whether the attribute is one of the function's first argument, which each call has anew."""
    owner = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
    return code.co_argcount > 0 and owner == code.co_varnames[0] and "LOAD_FAST" in before.opname


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)

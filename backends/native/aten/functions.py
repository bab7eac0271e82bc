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
from torch._library import autograd
from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch.autograd import Function

from dynacap.fxlite import Graph, Node
from dynacap.fxlite.risks import OWN_NAMESPACES

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
            for inner in _with_inner(function.__code__):
                self._add_code(function, inner, _cells(function))

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
    """What an operator from outside does for the sake of a backward pass."""
    made = _custom(target)
    for each in (made,) if made is not None else map(_registered, _overloads(target)):
        functions = (each._setup_context_fn, each._backward_fn) if each is not None else ()
        yield from (function for function in functions if function is not None)


def is_taken_apart(target: Any) -> bool:
    """Whether an operator is Python code that comes to other operators, which a trace would hold as
    it ran once; not what ``torch.library.register_autograd`` and ``custom_op`` make."""
    for each in () if _custom(target) is not None else _overloads(target):
        keys = _python_keys(each)
        if not keys.isdisjoint(("CompositeImplicitAutograd", "")):
            return True
        if any(key.startswith("Autograd") for key in keys) and _registered(each) is None:
            return True
    return False


def _custom(target: Any) -> CustomOpDef | None:
    """What ``torch.library.custom_op`` made, where an operator is of it."""
    name = getattr(target, "_qualified_op_name", None) or getattr(target, "_name", None)
    return target if isinstance(target, CustomOpDef) else OPDEFS.get(name)


def _overloads(target: Any) -> list[torch._ops.OpOverload]:
    """The operators that one from outside torch may be."""
    found = [target]
    if isinstance(target, torch._ops.OpOverloadPacket):
        found = [getattr(target, name) for name in target.overloads()]
    operators = (each for each in found if isinstance(each, torch._ops.OpOverload))
    return [each for each in operators if each.namespace not in OWN_NAMESPACES]


def _python_keys(operator: torch._ops.OpOverload) -> set[str]:
    """The keys of the dispatcher under which an operator has kernels in Python."""
    place = f"{operator._namespace}/{operator._opname}"
    names = {f"{place}.{operator._overloadname}"}
    if operator._overloadname == "default":
        names.add(place)
    return {
        key
        for name, _, key in (each.rpartition("/") for each in torch.library._impls)
        if name in names
    }


def _registered(operator: torch._ops.OpOverload) -> Any:
    """What ``torch.library.register_autograd`` keeps of an operator: its functions.

    They lie in the closure of the class of nodes that it makes for the operator.
    """
    name = f"GeneratedBackwardFor_{operator._namespace}_{operator._opname}_{operator._overloadname}"
    found = None
    for cls in Function.__subclasses__() if "Autograd" in _python_keys(operator) else ():
        if cls.__name__ == name and cls.__module__ == autograd.__name__:
            cells = _cells(cls.backward)
            if "orig_backward" in cells:  # with lists of tensors
                cells = _cells(cells["orig_backward"].cell_contents)
            found = cells["info"].cell_contents
    return found  # the last that was registered


def _cells(function: Any) -> dict[str, Any]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


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

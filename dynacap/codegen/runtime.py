"""Small functions that generated code calls to make objects which have no literal."""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from collections.abc import Iterator
from ctypes import PYFUNCTYPE, py_object, pythonapi
from typing import Any

from dynacap.guards.raw import type_flags, type_mro
from dynacap.hook.bodies import body, is_body
from dynacap.opcodes import Positions
from dynacap.opcodes.assemble import location

CellType = types.CellType
_HEAP_TYPE = 1 << 9
# an object's own dict, whatever its class says that ``__dict__`` is
attributes_of = PYFUNCTYPE(py_object, py_object)(("PyObject_GenericGetDict", pythonapi))


def object_new(cls: type) -> Any:
    """An instance of a class as its base that is written in C makes it, ``__init__`` not run."""
    base: Any = next(base for base in type_mro(cls) if not type_flags(base) & _HEAP_TYPE)
    return base.__new__(cls)


def alias_again(alias: Any) -> Any:
    """Another ``list[int]`` or ``int | str``, with arguments of its own."""
    if type(alias) is types.GenericAlias and not alias.__unpacked__:
        origin: Any = alias.__origin__
        return types.GenericAlias(origin, tuple([*alias.__args__]))
    return copy.copy(alias)


def clear_slot(obj: object, name: str) -> None:
    """Leave a slot unset; it may be so already, if what was deleted had just been set."""
    with contextlib.suppress(AttributeError):
        object.__delattr__(obj, name)


def make_function(
    code: types.CodeType,
    globals_: dict[str, Any],
    names: tuple[str, str],
    defaults: tuple[Any, ...] | None,
    cells: tuple[types.CellType, ...],
    kwdefaults: dict[str, Any] | None,
) -> types.FunctionType:
    """What MAKE_FUNCTION makes."""
    made = types.FunctionType(code, globals_, names[0], defaults, cells)
    made.__qualname__ = names[1]
    made.__kwdefaults__ = kwdefaults
    return made


def make_exception(
    cls: type[BaseException], args: tuple[Any, ...], made_of: tuple[Any, ...]
) -> BaseException:
    """An exception with these ``args``, no code of its class run; ``made_of`` makes it a group."""
    ways = (base.__dict__.get("__new__") for base in cls.__mro__)
    new = next(way for way in ways if type(way) is types.BuiltinFunctionType)
    made: BaseException = new(cls, *(made_of or args))
    made.args = args
    if isinstance(made, StopIteration) and args:
        made.value = args[0]
    return made


def make_traceback(
    found: types.TracebackType | None, trail: tuple[tuple[str, Positions, str], ...]
) -> types.TracebackType | None:
    """What becomes of a traceback while capturing: it gains the files, places and functions through
    which the exception came, the innermost first.

    Its frames are those of generators that never ran, since any other would hold who called it.
    """
    for name, place, function in trail:
        frame = types.FunctionType(_code_at(name, place, function), {})().gi_frame
        found = types.TracebackType(found, frame, 0, place[0] or 0)
    return found


@functools.lru_cache(maxsize=1024)
def _code_at(name: str, place: Positions, function: str) -> types.CodeType:
    """Code of a generator that stands at a place of a file."""
    plain = _nothing.__code__
    lines = location(len(plain.co_code) // 2, place, plain.co_firstlineno)
    return plain.replace(
        co_filename=name, co_name=function, co_qualname=function, co_linetable=lines
    )


def _nothing() -> Iterator[None]:
    yield


def new_generator(function: types.FunctionType) -> Any:
    """A generator of a function that has not started, whatever its arguments."""
    code = function.__code__
    count = code.co_argcount
    named = code.co_varnames[count : count + code.co_kwonlyargcount]
    return function(*[None] * count, **dict.fromkeys(named))


def finished_generator(function: types.FunctionType) -> Any:
    """A generator that has returned."""
    made = new_generator(function)
    made.close()
    return made


def call_flat(flat: tuple[Any, ...]) -> Any:
    """Call the function ``flat[0]`` with arguments as they lie in its frame."""
    function = flat[0]
    code = function.__code__
    if is_body(code) and len(flat) > 1:
        return body(function, code, flat[1])(None)
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    args = list(flat[1 : 1 + count])
    named = code.co_varnames[count : count + kwonly]
    kwargs = dict(zip(named, flat[1 + count :], strict=False))
    at = 1 + count + kwonly
    if code.co_flags & 0x04:
        args += flat[at]
        at += 1
    if code.co_flags & 0x08:
        kwargs.update(flat[at])
    return function(*args, **kwargs)

"""Python functions with the signature of another: to gather its arguments, or to stand in for it.

They are written as source, with names that the caller cannot see (positional-only parameters,
``*args``, ``**kwargs``) replaced by safe ones; the names that the user sees are put back after.
"""

import inspect
import itertools
import keyword
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, cast

from dynacap.hook.bodies import is_body

_OF_FUNCTIONS = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
_SAFE = "_dynacap_"
TRAMPOLINE_FILE = "<dynacap trampoline>"
_UNITS_PER_ENTRY = 8


class _Parameters:
    """The parameters of a code object under names that can be written in source."""

    def __init__(self, code: CodeType) -> None:
        count = code.co_argcount + code.co_kwonlyargcount
        names = [
            _safe_name(name, index, hidden=index < code.co_posonlyargcount)
            for index, name in enumerate(code.co_varnames[:count])
        ]
        self.positional_only = names[: code.co_posonlyargcount]
        self.positional = names[: code.co_argcount]
        self.keyword_only = names[code.co_argcount :]
        self.args = f"{_SAFE}args" if code.co_flags & inspect.CO_VARARGS else None
        self.kwargs = f"{_SAFE}kwargs" if code.co_flags & inspect.CO_VARKEYWORDS else None
        rest = [name for name in (self.args, self.kwargs) if name is not None]
        self.names = [*names, *rest]

    def declared(self) -> str:
        """The parameter list of a ``def``; defaults are the function object's business."""
        parts = list(self.positional)
        if self.positional_only:
            parts.insert(len(self.positional_only), "/")
        if self.args is not None:
            parts.append(f"*{self.args}")
        elif self.keyword_only:
            parts.append("*")
        parts += self.keyword_only
        if self.kwargs is not None:
            parts.append(f"**{self.kwargs}")
        return ", ".join(parts)

    def passed(self) -> str:
        """The argument list of a call that binds the same values to the same parameters."""
        parts = list(self.positional)
        if self.args is not None:
            parts.append(f"*{self.args}")
        parts += [f"{name}={name}" for name in self.keyword_only]
        if self.kwargs is not None:
            parts.append(f"**{self.kwargs}")
        return ", ".join(parts)

    def flat(self) -> str:
        """All values, in the order of ``co_varnames``."""
        return "".join(f"{name}, " for name in self.names)


def _safe_name(name: str, index: int, *, hidden: bool) -> str:
    writable = name.isidentifier() and not keyword.iskeyword(name)
    return f"{_SAFE}{index}" if hidden or not writable else name


def _defined(source: str, name: str) -> FunctionType:
    namespace: dict[str, Any] = {}
    exec(compile(source, TRAMPOLINE_FILE, "exec"), namespace)
    return cast(FunctionType, namespace[name])


def gatherer(code: CodeType) -> FunctionType:
    """A function with the signature of ``code`` that returns the tuple of its bound arguments.

    It has no defaults: who calls it gives it those of the function at that time.
    """
    parameters = _Parameters(code)
    source = f"def gather({parameters.declared()}):\n return ({parameters.flat()})"
    return _defined(source, "gather")


def spreader(code: CodeType) -> Callable[..., Any]:
    """``spread(function, *bound)``: call a function of that signature with bound arguments."""
    parameters = _Parameters(code)
    source = (
        f"def spread({_SAFE}function, {', '.join(parameters.names)}):\n"
        f" return {_SAFE}function({parameters.passed()})"
    )
    return _defined(source, "spread")


def trampoline(code: CodeType, run: Callable[..., Any]) -> CodeType:
    """A code object in the place of ``code`` that returns ``run(*bound)``.

    Name, file, first line, parameters and free variables are those of ``code``, so that it can be
    a function's ``__code__`` instead and is found where the user looks for the function.
    """
    parameters = _Parameters(code)
    free = [f"{_SAFE}free{index}" for index in range(len(code.co_freevars))]
    # A local of a body's frame would be a name in its namespace.
    called = f"{TRAMPOLINE_FILE!r}.__call__" if is_body(code) else f"{_SAFE}run"
    lines = [
        "def outer():",
        *(f" {name} = None" for name in free),
        f" def inner({parameters.declared()}):",
        *(f"  {_SAFE}run = {TRAMPOLINE_FILE!r}" for _ in range(not is_body(code))),
        f"  return {called}({parameters.flat()})",
        *(f"  {name}" for name in free),
        " return inner",
    ]
    inner = _defined("\n".join(lines), "outer")().__code__
    shown = code.co_varnames[: len(parameters.names)]
    return cast(CodeType, inner).replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_flags=inner.co_flags & ~_OF_FUNCTIONS | code.co_flags & _OF_FUNCTIONS,
        co_linetable=_one_line(len(inner.co_code) // 2),
        co_varnames=(*shown, *inner.co_varnames[len(shown) :]),
        co_freevars=code.co_freevars,
        co_consts=tuple(run if value == TRAMPOLINE_FILE else value for value in inner.co_consts),
    )


def _one_line(units: int) -> bytes:
    """A location table that puts so many code units on the first line, without columns."""
    return bytes(itertools.chain.from_iterable(_entries(units)))


def _entries(units: int) -> Iterator[tuple[int, int]]:
    for done in range(0, units, _UNITS_PER_ENTRY):
        length = min(_UNITS_PER_ENTRY, units - done)
        yield 0x80 | (13 << 3) | (length - 1), 0


def bind_arguments(
    function: FunctionType, code: CodeType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a call as CPython binds them to ``code``; TypeError if they do not fit."""
    gather = gatherer(code)
    gather.__defaults__ = function.__defaults__
    gather.__kwdefaults__ = function.__kwdefaults__
    bound: tuple[Any, ...] = gather(*args, **kwargs)
    return bound

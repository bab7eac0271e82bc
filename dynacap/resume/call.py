"""Running made code in the name of a user's function."""

from collections.abc import Generator
from types import CellType, CodeType, FunctionType
from typing import Any

# Made code takes its cells as arguments; a function object still wants a closure of the right size.
_NO_CLOSURE: list[tuple[CellType, ...]] = [()]


def bind(func: FunctionType, code: CodeType) -> FunctionType:
    """Return a function that runs made code with the globals and the name of a user's function.

    It takes a list of the cells and the values, which it empties; it may be kept and called again.
    Of a body, code runs in its namespace by what `hook.bodies` makes instead.
    """
    free = len(code.co_freevars)
    while len(_NO_CLOSURE) <= free:
        _NO_CLOSURE.append(tuple(CellType() for _ in range(len(_NO_CLOSURE))))
    return FunctionType(code, func.__globals__, func.__name__, None, _NO_CLOSURE[free])


def make_generator(
    func: FunctionType, code: CodeType, cells: tuple[CellType, ...], values: tuple[Any, ...]
) -> Generator[Any, Any, Any]:
    """Return a generator made by `generator_code`, suspended where the original was."""
    function = bind(func, code)
    function.__qualname__ = func.__qualname__
    made: Generator[Any, Any, Any] = function([*cells, *values])
    made.send(None)
    return made

"""The function object that runs a frame, as far as it can be found from outside."""

import gc
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from dynacap.hook.code_table import CodeTable

SEARCH_AFTER = 4
"""Calls of a code object before all objects are searched for its function."""

SEARCHES = 2
"""Searches for one code object; closures that are made anew for each call are not worth more."""

MOST_WRAPPERS = 20


Worth = Callable[[CodeType], bool]
_worth: list[Worth] = [lambda code: True]


def search_only(worth: Worth) -> Worth:
    """Search all objects for a function only where this says that its code is worth it; gives what
    said so before.
    """
    before, _worth[:] = _worth[0], [worth]
    return before


class FunctionFinder:
    """Finds functions by name, by the first argument's class, or by a search of all objects.

    Any function that has the frame's code will do: what is exchanged is one function object, and
    another with the same code is none the worse for it.
    """

    def __init__(self) -> None:
        self._found: CodeTable[weakref.ref[FunctionType]] = CodeTable()
        self._calls: CodeTable[int] = CodeTable()

    def find(self, frame: FrameType) -> FunctionType | None:
        """A function whose code the frame runs, or None."""
        code = frame.f_code
        known = self._found.get(code)
        function = known() if known is not None else None
        if function is None or function.__code__ is not code:
            function = self._look(frame, code)
            if function is not None:
                self._found[code] = weakref.ref(function)
        return function

    def clear(self) -> None:
        """Forget what was found and what was not."""
        self._found.clear()
        self._calls.clear()

    def _look(self, frame: FrameType, code: CodeType) -> FunctionType | None:
        calls = (self._calls.get(code) or 0) + 1
        self._calls[code] = calls
        if calls > SEARCH_AFTER * SEARCHES:
            return None
        for candidate in _named(frame, code):
            function = _with_code(candidate, code)
            if function is not None:
                return function
        return _only_referrer(code) if calls % SEARCH_AFTER == 0 and _worth[0](code) else None


# Looking must run no code of the user's: types are asked for by type(), never through __class__.


def _named(frame: FrameType, code: CodeType) -> Iterator[object]:
    """What stands under the function's name, where names of functions stand."""
    first, *rest = code.co_qualname.split(".")
    found: Any = frame.f_globals.get(first)
    for name in rest:
        found = vars(found).get(name) if issubclass(type(found), type) else None
    yield found
    if code.co_argcount:
        receiver: Any = frame.f_locals.get(code.co_varnames[0])
        owner = receiver if issubclass(type(receiver), type) else type(receiver)
        for base in owner.__mro__ or ():  # none yet while the class is made
            yield vars(base).get(code.co_name)


def _with_code(candidate: object, code: CodeType) -> FunctionType | None:
    """The function with that code which ``candidate`` is, or wraps, or None."""
    pending = [candidate]
    for _ in range(MOST_WRAPPERS):
        if not pending:
            return None
        found = pending.pop()
        if type(found) is FunctionType and found.__code__ is code:
            return found
        pending += _wrapped(found)
    return None


def _wrapped(holder: object) -> list[object]:
    if type(holder) is FunctionType:
        return [holder.__dict__["__wrapped__"]] if "__wrapped__" in holder.__dict__ else []
    if issubclass(type(holder), (staticmethod, classmethod)):
        return [getattr(holder, "__func__", None)]
    if issubclass(type(holder), property):
        return [getattr(holder, name, None) for name in ("fget", "fset", "fdel")]
    return []


def _only_referrer(code: CodeType) -> FunctionType | None:
    functions = [
        referrer
        for referrer in gc.get_referrers(code)
        if type(referrer) is FunctionType and referrer.__code__ is code
    ]
    return functions[0] if len(functions) == 1 else None

"""``exec`` and ``__build_class__`` while the hook in plain Python is active.

They run bodies, and most bodies run once, so that a trace function, which can dispatch a function
from its second call on, would never get to one.  So while the hook is active in a thread these two
stand in ``builtins`` for Python's own, and offer a body before they let Python run it.
"""

import __future__

import builtins
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from dynacap.hook.bodies import is_body

_exec, _build_class = builtins.exec, builtins.__build_class__
_PARAMETERS = "source", "globals", "locals"
_KEYWORDS = {
    name
    for name, parameter in inspect.signature(_exec).parameters.items()
    if parameter.kind is not parameter.POSITIONAL_ONLY
}
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class BodyCalls:
    """The two functions, which ask ``offer`` to let a function's first call be captured."""

    def __init__(self, offer: Callable[[FunctionType], None]) -> None:
        self._offer = offer
        self._instead: dict[str, tuple[Any, Any]] = {
            "exec": (_exec, self.exec),
            "__build_class__": (_build_class, self.build_class),
        }

    def put(self) -> None:
        """Let them stand for Python's own, unless the user has put something else there."""
        for name, (own, ours) in self._instead.items():
            _replace(name, own, ours)

    def take_away(self) -> None:
        """Put Python's own back."""
        for name, (own, ours) in self._instead.items():
            _replace(name, ours, own)

    def in_place_of(self, value: Any) -> Any:
        """Ours for one of Python's own, else the value."""
        return next((ours for own, ours in self._instead.values() if value is own), value)

    def exec(self, /, *args: Any, **keywords: Any) -> None:
        """What ``exec`` does, for the frame that calls this."""
        given = dict(zip(_PARAMETERS, args))  # noqa: B905  # too many are found below
        if not args or len(args) > len(given) or not keywords.keys() <= _KEYWORDS - given.keys():
            return _exec(*args, **keywords)  # which says what is wrong with them
        frame = sys._getframe(1)
        known: dict[str, Any] = given | keywords
        source, globals, locals = [known.pop(name, None) for name in _PARAMETERS]
        if globals is None:
            globals, locals = frame.f_globals, _names(frame) if locals is None else locals
        if isinstance(globals, dict):
            dict.setdefault(globals, "__builtins__", frame.f_builtins)
            if isinstance(source, str | bytes):
                flags = frame.f_code.co_flags & _FUTURE
                source = compile(source, "<string>", "exec", flags, dont_inherit=True)
            if isinstance(source, CodeType) and is_body(source) and not source.co_freevars:
                function = FunctionType(source, globals)
                self._offer(function)
                source = function.__code__
        return _exec(source, globals, locals, **known)

    def build_class(self, /, *args: Any, **keywords: Any) -> Any:
        """What ``__build_class__`` does."""
        if args and type(args[0]) is FunctionType:
            self._offer(args[0])
        return _build_class(*args, **keywords)


def _replace(name: str, old: Any, new: Any) -> None:
    if vars(builtins).get(name) is old:
        vars(builtins)[name] = new


def _names(frame: FrameType) -> Any:
    """The mapping that ``locals()`` gives there: of a function a dict, which is nobody else's."""
    names = frame.f_locals
    return names if is_body(frame.f_code) or type(names) is dict else dict(names)

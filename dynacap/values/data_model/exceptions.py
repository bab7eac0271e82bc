"""How built-in exceptions are made: their arguments, and the fields that some make of them."""

from __future__ import annotations

from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.object import ExceptionValue
from dynacap.values.tracer import Tracer

# the named arguments that are kept in fields of the same names
_NAMED: tuple[tuple[type, tuple[str, ...]], ...] = (
    (AttributeError, ("name", "obj")),
    (NameError, ("name",)),
    (ImportError, ("name", "path")),
)
# from how many arguments on a class makes more of them than ``args``
_MAKES_MORE: tuple[tuple[type, int], ...] = (
    (OSError, 2),
    (SyntaxError, 1),
    (UnicodeDecodeError, 0),
    (UnicodeEncodeError, 0),
    (UnicodeTranslateError, 0),
    (BaseExceptionGroup, 0),
)


def makes_more(cls: type, count: int) -> bool:
    """Whether a class works something out from so many arguments, in C."""
    return any(issubclass(cls, kind) and count >= least for kind, least in _MAKES_MORE)


def new_exception(t: Tracer, cls: type, args: list[Value]) -> ExceptionValue:
    """``cls.__new__(cls, *args)`` of a built-in exception, which takes any named arguments."""
    if issubclass(cls, BaseExceptionGroup):
        return _new_group(t, cls, args)
    if makes_more(cls, len(args)):
        t.graph_break("unsupported-call", f"{cls.__name__} makes fields of its arguments")
    return ExceptionValue(cls, args)


def _new_group(t: Tracer, cls: type, args: list[Value]) -> ExceptionValue:
    """A group, if nothing is wrong with the message and the exceptions."""
    parts: list[Value] = []
    if len(args) == 2 and issubclass(args[0].cls, str) and args[1].cls in (tuple, list):
        if isinstance(args[1], (TupleValue, ListValue)):
            parts = [t.force(item) for item in args[1].items]
    plain = all(issubclass(each.cls, Exception) for each in parts)
    good = parts and all(isinstance(each, ExceptionValue) for each in parts)
    if not good or not (plain or not issubclass(cls, Exception)):
        t.graph_break("bad-arguments", f"{cls.__name__} refuses its arguments")
    made = ExceptionValue(ExceptionGroup if plain and cls is BaseExceptionGroup else cls, args)
    made.made_of = [args[0], TupleValue(parts)]
    return made


def init_exception(
    t: Tracer, exc: ExceptionValue, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """``__init__`` of a built-in exception."""
    if exc.real is not None or (makes_more(exc.cls, len(args)) and not exc.made_of):
        t.graph_break("exception-write", f"the arguments of a {exc.cls.__name__} are set")
    names = next((names for kind, names in _NAMED if issubclass(exc.cls, kind)), ())
    if not kwargs.keys() <= set(names):
        t.graph_break("bad-arguments", f"{exc.cls.__name__}() gets {', '.join(kwargs)}")
    exc.args, exc.shown = args, None
    if issubclass(exc.cls, ImportError) and len(args) == 1:
        kwargs = kwargs | {"msg": args[0]}
    exc.slots |= dict.fromkeys(exc.slots.keys() & {*names, "msg"}, Const(None))
    exc.slots |= kwargs

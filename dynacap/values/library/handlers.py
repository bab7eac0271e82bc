"""How library handlers are written: operands as parameters, and the small questions they ask.

``@handles(list.append)`` registers a function whose own parameters are the operands, so that a
call with the wrong number of them never reaches it: such a call breaks, and eager Python raises
its own error.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from dynacap.values.base import (
    MISSING,
    NONE as NONE,
    Const,
    NotConstant,
    Value,
    constant_or,
    is_none as is_none,
    real_of_known as real_of_known,
)
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue
from dynacap.values.data_model.calls import C_METHODS, call_special
from dynacap.values.library.misuse import (
    bad_arguments,
    check_class,
    makes_instances,
    refuse_receiver,
)
from dynacap.values.natives import native
from dynacap.values.object import ExceptionValue, payload_of
from dynacap.values.tracer import Tracer

Operation = Callable[..., "Value | None"]

# the built-in type that declares a method -> the storage that a handler for it works on
_STORAGE: dict[type, type[Value]] = {
    list: ListValue,
    deque: ListValue,
    tuple: TupleValue,
    dict: DictValue,
    OrderedDict: DictValue,
    defaultdict: DictValue,
    set: SetValue,
    frozenset: SetValue,
}


BUILT_IN = (
    int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range,
    slice, deque, OrderedDict, defaultdict,
)  # fmt: skip


def handles(*targets: Any) -> Callable[[Operation], Operation]:
    """Register a function that takes the operands of these very callables as its parameters.

    Returning None means that the call gives None.
    """

    def register(function: Operation) -> Operation:
        for target in targets:
            native(target)(_adapter(function, target))
        return function

    return register


def handles_rows(operations: Mapping[Any, Operation]) -> None:
    """The same for callables whose handlers are one expression, one row a callable."""
    for target, operation in operations.items():
        handles(target)(operation)


def handles_each(operations: Mapping[str, Operation], *owners: type) -> None:
    """The same for the methods of these names that these types declare, one row a name."""
    for name, operation in operations.items():
        handles(*methods(name, *owners))(operation)


def giving_self(change: Callable[..., Value | None]) -> Operation:
    """The same change as an operation that gives the object: ``a += b`` and its kin."""

    def operate(t: Tracer, self: Value, other: Value, /) -> Value:
        change(t, self, other)
        return self

    return operate


def handles_both(name: str, operation: Operation, *owners: type) -> None:
    """A binary operator and its reflected form."""
    handles(*methods(f"__{name}__", *owners))(operation)
    handles(*methods(f"__r{name}__", *owners))(lambda t, self, other, /: operation(t, other, self))


def _adapter(function: Operation, target: Any) -> Callable[..., Value]:
    owner = target.__objclass__ if isinstance(target, C_METHODS) else None
    makes = makes_instances(target)
    unordered = owner is dict and target.__name__ in vars(OrderedDict)

    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if owner is not None:
            args = _with_storage(t, owner, target, args)
            if unordered and issubclass(args[0].cls, OrderedDict):
                t.graph_break("foreign-storage", f"{target.__qualname__} of an OrderedDict")
        if makes and not args:
            bad_arguments(t, target, args, kwargs)
        if makes:
            check_class(t, target, args[0])
        try:
            result = function(t, *args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise
        else:
            return NONE if result is None else result
        return bad_arguments(t, target, args, kwargs)  # the call did not come to run the function

    return handler


def _with_storage(t: Tracer, owner: type, target: Any, args: list[Value]) -> list[Value]:
    """The operands, the first of them checked as CPython's descriptors check it."""
    if not args or not issubclass(args[0].cls, owner):
        refuse_receiver(t, target, args)
    wanted = _STORAGE.get(owner)
    if wanted is None or isinstance(args[0], wanted):
        return args
    stored = as_storage(t, args[0])
    if not isinstance(stored, wanted):
        t.graph_break("foreign-storage", f"{args[0].describe()} in {target.__qualname__}")
    return [stored, *args[1:]]


def as_storage(t: Tracer, value: Value) -> Value:
    """A container that is known as a constant, with its elements as values."""
    if isinstance(value, (TupleValue, SetValue)):
        return value
    real = constant_or(value, None)
    if isinstance(real, tuple):
        return TupleValue([t.wrap(item, None) for item in real], type(real))
    if isinstance(real, frozenset):
        items = {item: t.wrap(item, None) for item in real}
        return SetValue(items, type(real), shadow=real)
    return value


def methods(name: str, *owners: type) -> list[Any]:
    """The methods of that name which these types themselves declare."""
    return [owner.__dict__[name] for owner in owners if name in owner.__dict__]


def constant_of(t: Tracer, value: Value, what: str) -> Any:
    """The constant of a value that must be one."""
    try:
        return value.constant()
    except NotConstant:
        return t.graph_break("not-constant", f"{what} is {value.describe()}")


def index_of(t: Tracer, value: Value, message: str = "") -> int:
    """``operator.index(value)``."""
    real = payload_of(value)
    if isinstance(real, int):
        return int(real)
    if t.lookup(value.cls, "__index__") is MISSING:
        default = f"{value.title!r} object cannot be interpreted as an integer"
        t.raise_error(TypeError, message or default)
    found = call_special(t, value, "__index__", [])
    if not issubclass(found.cls, int) and not t.tensors.owns(found):
        t.raise_error(TypeError, f"__index__ returned non-int (type {found.title})")
    return int(constant_of(t, found, "an index"))


def not_implemented() -> Value:
    """What a special method answers that leaves the operation to the other operand."""
    return Const(NotImplemented)


def unordered(t: Tracer, self: Value, other: Value, /) -> Value:
    """``<`` and its kin on what has no order."""
    return not_implemented()


def raise_with(t: Tracer, cls: type[BaseException], *args: Value) -> NoReturn:
    """Raise in the traced program, with values as the exception's arguments."""
    t.throw(ExceptionValue(cls, list(args)))

"""What the running Python says of a failure: asked of it, since the words change with versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import contains
from typing import Any


def error_of(operation: Callable[..., object], *args: object) -> Exception:
    """The exception of an operation that fails."""
    try:
        operation(*args)
    except Exception as error:
        return error
    raise AssertionError(f"{operation} of {args} does not fail")


def instance_named(name: str, **body: Any) -> Any:
    """An object whose class has this name, and else only what is said here."""
    return type(name, (), body)()


def unhashable(cls: type, text: str, container: type) -> Exception:
    """What a dict or set makes of a TypeError that comes out of the hash of a key."""

    def fail(self: object) -> int:
        raise TypeError(text)

    return error_of(contains, container(), _sample_of(cls, __hash__=fail))


def not_for_with(cls: type, methods: Iterable[str]) -> Exception:
    """What ``with`` says of an object that has only these of the methods for it."""
    return error_of(_enter, _sample_of(cls, **dict.fromkeys(methods, lambda *args: None)))


def unset_slot(cls: type, name: str) -> Exception:
    """What reading a slot says that holds nothing."""
    return error_of(getattr, _sample_of(cls, __slots__=(name,)), name)


def wrong_number(wanted: int, cls: type, size: int) -> Exception:
    """What unpacking an iterable of so many elements says where another number is wanted."""
    given: Any = dict.fromkeys(range(size))
    given = cls(given) if cls in (dict, list, tuple) else iter(given)
    return error_of(eval, f"[0 for ({'_, ' * wanted}) in given]", {"given": [given]})


def _enter(manager: Any) -> None:
    with manager:
        pass


def _sample_of(cls: type, **body: Any) -> Any:
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return instance_named(cls.__name__, **names, **body)

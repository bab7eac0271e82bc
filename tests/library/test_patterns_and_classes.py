"""Patterns that do not fit their class, and classes that answer for themselves."""

import re
import types
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


class Twice:
    __match_args__ = ("a", "a")
    a = 1


class Once:
    __match_args__ = ("a",)
    a = 1


class NoText:
    __match_args__: Any = (None,)


class NoTuple:
    __match_args__: Any = ["a"]  # noqa: RUF012
    a = 1


class Keys:
    KEY = "a"


def matched(subject: Any) -> Any:
    match subject:
        case Twice(first, second):
            return first, second
        case Once(first, a=second):
            return first, second
        case NoText(first):
            return first
        case NoTuple(first):
            return first
        case {Keys.KEY: first, "a": second}:
            return first, second
    return None


@program(*((X, make) for make in (Twice, Once, NoText, NoTuple, dict, Keys)), breaks=None)
def test_patterns_that_do_not_fit(x: Tensor, make: Any) -> Any:
    try:
        return x + 1, matched(make() if make is not dict else {"a": 1})
    except (TypeError, ValueError) as error:
        return x + 1, type(error), str(error)


class Unhashable(type):
    def __eq__(cls, other: object) -> bool:
        return cls is other

    def __subclasscheck__(cls, sub: type) -> bool:
        raise ZeroDivisionError


class Odd(metaclass=Unhashable):
    """Its class has no hash, and does not answer."""


@program((X, Odd, int | Odd), breaks=None)
def test_a_class_without_a_hash(x: Tensor, kind: Any, union: Any) -> Any:
    print("a break", file=None)
    found = []
    for asked in (kind, union):
        try:
            found.append(issubclass(str, asked))
        except ZeroDivisionError:
            found.append("refused")
    return x + 1, isinstance(3, union), found, kind is Odd


@program((X,), breaks=None)
def test_super_of_no_class(x: Tensor) -> Any:
    try:
        super(1, int)
    except TypeError as error:
        return x + 1, str(error)


@program((X,), breaks=None)
def test_a_proxy_of_no_mapping(x: Tensor) -> Any:
    found = []
    for each in ((), [], 3, {}):
        try:
            found.append(len(types.MappingProxyType(each)))
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


@program((X, re.compile("a+")), breaks=None)
def test_a_bound_method_that_crosses_a_break(x: Tensor, pattern: re.Pattern[str]) -> Any:
    return x + 1, [found.span() for found in pattern.finditer("aa b aaa")]


class Wraps:
    @classmethod
    @property
    def outer(cls) -> str:
        return cls.__name__

    @classmethod
    @classmethod
    def twice(cls) -> str:
        return cls.__name__


@program((X, Wraps), breaks=None)
def test_a_classmethod_around_a_descriptor(x: Tensor, kind: Any) -> Any:
    found = []
    for ask in (lambda: kind.outer, lambda: kind.twice()):
        try:
            found.append(str(ask()))
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


@program((X, ExceptionGroup("g", [ValueError(1)])), (X, OSError(2, "x")), breaks=None)
def test_fields_of_built_in_exceptions_are_set(x: Tensor, error: Any) -> Any:
    found = []
    for name in ("message", "exceptions", "errno"):
        try:
            setattr(error, name, 5)
        except AttributeError as refused:
            found.append(str(refused))
        found.append(repr(getattr(error, name, None)))
    return x + 1, found


@program((X, "%." + "9" * 30 + "f"), (X, "%d"), breaks=None)
def test_a_format_that_overflows(x: Tensor, text: str) -> Any:
    try:
        return x + 1, text % 1.5
    except (OverflowError, ValueError) as error:
        return x + 1, type(error), str(error)

"""What annotations are made of, called and combined; protocols asked for instances and classes."""

import functools
import operator
import sys
import types
import typing
from typing import Annotated, Any, Protocol, runtime_checkable

import pytest
import torch
from torch import Tensor

from dynacap.testing import program

X = torch.ones(2)
Element = typing.TypeVar("Element")


class Pair(tuple[Element, Element]):
    """A class whose instances remember their alias."""


class Plain(tuple[Any, ...]):
    """One that is subscripted to no avail."""


class Answering:
    """Has a member for those who ask it, none for those who look."""

    def __getattr__(self, name: str) -> Any:
        if name == "member":
            return 42
        raise AttributeError(name)


class Computing:
    """Has a member that runs code."""

    @property
    def member(self) -> int:
        print("asked")
        return 1


@runtime_checkable
class WithMember(Protocol):
    """Has a member that is no method."""

    member: int


def raised(function: Any, *args: Any) -> str:
    try:
        return repr(function(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


IntPair: Any = Pair[int]
ANSWERING, COMPUTING = Answering(), Computing()
HASHLESS: Any = Annotated[str, {}]


@program((X,), breaks=None)
def test_instances_know_the_alias_that_made_them(x: Tensor) -> Any:
    pair = IntPair((1, 2))
    return pair, pair.__orig_class__ is IntPair, list[int]((3, 4)), type[int](5), x + 1


@program((X,), breaks=None)
def test_a_union_holds_what_it_is_made_of(x: Tensor) -> Any:
    union: Any = Annotated[int, 1] | str | Annotated[str, {}] | int
    args = typing.get_args(union)
    again = functools.reduce(operator.or_, args)
    return again == union, [type(arg).__name__ for arg in args], repr(int | HASHLESS), x + 1


@program((X,), breaks=None)
def test_an_alias_is_subscripted_with_an_object(x: Tensor) -> Any:
    alias: Any = list[Element] | None  # type: ignore[valid-type]
    return repr(alias[HASHLESS]), x + 1


@program((X,), breaks=None)
def test_what_has_keys_alone_is_not_iterated(x: Tensor) -> Any:
    unions: list[Any] = [int | str, typing.Union[str, Pair[int]], typing.Tuple]  # noqa: UP006, UP007
    each = [raised(function, union) for union in unions for function in (iter, list)]
    return each, x + 1


@program((X,), breaks=None)
def test_what_is_no_class_may_answer_for_one(x: Tensor) -> Any:
    names: list[Any] = [typing.Tuple, typing.Callable, typing.List]  # noqa: UP006
    pairs = [(sub, name) for sub in (Plain, tuple, 3, *names) for name in names]
    return [raised(issubclass, *pair) for pair in pairs], x + 1


@program((X,), breaks=None)
def test_a_protocol_looks_for_members_as_typing_does(x: Tensor) -> Any:
    found = [isinstance(each, WithMember) for each in (ANSWERING, COMPUTING, Answering(), x)]
    return found, x + 1


@program((X,), breaks=None)
def test_a_protocol_made_inside_knows_its_members(x: Tensor) -> Any:
    @runtime_checkable
    class Local(Protocol):
        member: int

    return raised(issubclass, int, Local), x + 1


class Parameter:
    """What may stand for a type variable."""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="CPython crashes")
@program((X,), breaks=None)
def test_what_an_alias_holds_becomes_a_parameter_late(x: Tensor) -> Any:
    first, late = Parameter(), Parameter()
    first.__typing_subst__ = lambda value: value  # type: ignore[attr-defined]
    alias: Any = types.GenericAlias(dict, (first, late))
    count = len(alias.__parameters__)
    late.__typing_subst__ = lambda value: value  # type: ignore[attr-defined]
    return count, raised(operator.getitem, alias, 0).partition("<")[0], x + 1

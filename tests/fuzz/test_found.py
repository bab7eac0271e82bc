"""What generated programs found, each in its smallest form."""

import array
import collections
import re
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
PATTERN = re.compile("a")


class Base:
    """A class."""

    def method(self) -> int:
        return 1


class Sub(Base):
    """A class below it."""


@scenario()
def test_a_slice_is_a_new_one_for_each_call() -> Scenario:
    kept: list[Any] = []

    def function(x: Tensor) -> Any:
        kept.append(slice(2))
        return x + 1

    return Scenario(function, [call(X.clone())] * 3, watch=lambda: kept)


@program((X, [collections.OrderedDict(), collections.deque(), 1, Base()]), breaks=None)
def test_messages_name_types_as_cpython_does(x: Tensor, objects: list[Any]) -> Any:
    texts = []
    for one in objects:
        try:
            one.missing  # noqa: B018
        except AttributeError as error:
            texts.append(str(error))
        try:
            one + None
        except TypeError as error:
            texts.append(str(error))
    return x + 1, texts


@program((X, (1, 2)), (X, 1), (X, Base()), breaks=None)
def test_what_cannot_be_deleted(x: Tensor, one: Any) -> Any:
    texts = []
    try:
        del one[0]
    except TypeError as error:
        texts.append(str(error))
    try:
        del one[1:]
    except TypeError as error:
        texts.append(str(error))
    return x + 1, texts


@program((X, Base()), (X, 2), breaks=None)
def test_super_of_what_is_no_instance(x: Tensor, one: Any) -> Any:
    return x + super(Sub, one).method()


@program((X, array.array("b", [1])), breaks=None)
def test_bound_c_methods_kept_across_a_break(x: Tensor, numbers: Any) -> Any:
    x = x + 1
    push, made, parse = numbers.extend, dict.fromkeys, PATTERN.match
    print("break")
    push([2])
    return x, made("ab"), parse("aa") is not None, numbers.tolist()


def noted(log: list[Any]) -> Iterator[int]:
    try:
        yield 1
    finally:
        log.append("closed")


def raises(x: Tensor, log: list[Any]) -> Any:
    held = noted(log)
    next(held)
    x = x + 1
    return x, held, undefined  # type: ignore[name-defined] # noqa: F821


@scenario(breaks=None)
def test_a_cleared_traceback_lets_go_of_what_frames_held() -> Scenario:
    log: list[Any] = []

    def before(index: int) -> None:
        log.append(index)

    return Scenario(raises, [call(X.clone(), log)] * 3, before=before)


def test_clearing_is_what_lets_go() -> None:
    log: list[Any] = []
    try:
        raises(X, log)
    except NameError as error:
        assert log == []
        traceback.clear_frames(error.__traceback__)
    assert log == ["closed"]

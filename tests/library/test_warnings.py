"""Warnings point where those of eager do, and what follows them is captured."""

import traceback
import warnings
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import program

X = torch.arange(3.0)


def inner(x: Tensor, level: int) -> Tensor:
    y = x + 1
    warnings.warn(f"level {level}", DeprecationWarning, stacklevel=level)
    return y * 2


def middle(x: Tensor, level: int) -> Tensor:
    return inner(x, level) - 1


def outer(x: Tensor, level: int) -> Tensor:
    a = x * 3
    return middle(a, level) + a


def given(run: Callable[..., Any], *args: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            run(*args)
    return [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("level", [-1, 1, 2, 3, 4, 5, 9, 1000])
def test_a_level_points_at_its_caller(level: int) -> None:
    captured = dynacap.compile(outer, backend="eager")
    calls = [given(run, X, level) for run in (outer, captured)]
    assert calls[0] == calls[1]


def test_what_follows_a_warning_is_captured() -> None:
    graphs = dynacap.explain(outer, backend="eager")(X, 2)
    assert (graphs.graph_break_count, graphs.op_count) == (1, 5)


class Old:
    @property
    def value(self) -> int:
        warnings.warn("value is old", FutureWarning, 2)
        return 2


@program((X, Old()), breaks=None)
def test_other_ways_to_warn(x: Tensor, old: Old) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = x + old.value
        partial(warnings.warn, stacklevel=2)("through a partial")
        warnings.warn(UserWarning("an object"), None, 2, x)
        list(map(warnings.warn, ["mapped"]))
        for level in range(1, 4):
            warnings.warn("in a loop", ImportWarning, stacklevel=level)
            x = x * level
    exact = choose_hook().capabilities.tidies_tracebacks  # the other has frames in between
    told = [(str(w.message), w.category, w.source is None, exact and w.lineno) for w in caught]
    return x, told


@program((X,), breaks=None)
def test_a_place_warns_once(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        __warningregistry__ = globals().setdefault("__warningregistry__", {})
        __warningregistry__.clear()
        for level in (2, 2, 3, 2):
            x = middle(x, level)
    return x, len(caught)


@program((X,), breaks=None)
def test_what_is_no_warning_is_refused(x: Tensor) -> Any:
    try:
        warnings.warn("of no kind", int, stacklevel=2)  # type: ignore[call-overload]
    except TypeError as error:
        return x + 1, str(error)
    return x


@pytest.mark.parametrize("level", [2, 9])
def test_a_warning_made_an_error(level: int) -> None:
    def failing(run: Callable[..., Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DeprecationWarning) as caught:
                run(X, level)
        frames = traceback.extract_tb(caught.value.__traceback__)
        tidied = choose_hook().capabilities.tidies_tracebacks
        seen = [(f.name, f.lineno) for f in frames if tidied or f.filename == __file__]
        return [entry for entry, _ in groupby(seen) if entry[0] != "failing"]

    captured = dynacap.compile(outer, backend="eager")
    assert failing(captured) == failing(outer) == failing(captured)

"""Conditions on sizes: the program in C answers as the text does, or asks it."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from dynacap.guards import Checker, GuardSet, Local, Sizes
from dynacap.guards.choose import C_IMPORT_ERROR
from dynacap.guards.size_program import write_program
from dynacap.guards.tensor_source import OFFSET, SIZE, STRIDE, TensorNumber

X, Y = Local(0, "x"), Local(1, "y")
BIG = 2**62

# What can be said of two numbers, and whether it has a program.
TEXTS: dict[str, bool] = {
    "v0 == v1": True,
    "v0 != v1": True,
    "v0 < v1 and v0 <= 3": True,
    "v0 > v1 or v0 >= 3": True,
    "not (v0 == 2)": True,
    "-1 <= v0 <= v1": True,
    "v0 + v1 - 3 > 0": True,
    "v0*v1 >= 6": True,
    "v0 // v1 == -2": True,
    "v0 % v1 == 1": True,
    "(v0 % v1) + (v0 // v1)*v1 == v0": True,
    "min(v0, v1) + 2 == max(v0, 5)": True,
    "min(v0, v1, 4) == 4": True,
    "-v0 == v1": True,
    "v0**3 > v1**2": True,
    "v0 / v1 > 1.5": True,
    "v0 / v1 == v1 / v0": True,
    "math.floor(v0 * 0.3) == v1": True,
    "math.ceil(v0 / v1) < 4": True,
    "math.trunc(v0 / v1) == -2": True,
    "math.floor(v0) == v1": True,
    "float(v0) + 0.5 < v1": True,
    "v0 - 0.25 <= v1 * 2.0": True,
    "1e308 * v0 * v1 < 1e308": True,
    "v0.real == v1": True,
    "v0.real * 0.1 * 3 > v1.real - 0.1": True,
    "not v0.real < 1.0": True,
    "-v0.real * 2.0 <= (-v1)": True,
    "v0.real / v1.real >= float('-inf')": True,
    "v0.real == float('nan')": True,
    "v0 < 9223372036854775808": False,
    "math.sqrt(v0.real) < 2": False,
    "round(v0 / 2) == v1": False,
    "abs(v0) == 1": False,
    "v0**9 == v1": False,
    "v0 // 2.0 == v1": False,
    "(v0 if v0 > v1 else v1) == 3": False,
    "v0 in (2, 3)": False,
}
FLOATS = (0.0, -0.0, 0.1, 1.0, -2.5, 5e-324, 1.7e308, math.inf, -math.inf, math.nan)
NUMBERS = (0, 1, -1, 2, 3, -5, 7, 2**53, 2**53 + 1, BIG, -BIG, 2**63 - 1, -(2**63), 2**64)


@pytest.mark.parametrize("text", TEXTS)
def test_numbers(text: str, make_checker: Callable[..., Checker]) -> None:
    checker = make_checker(GuardSet([Sizes((X, Y), ((text, text),))]))
    for left in NUMBERS + FLOATS:
        for right in NUMBERS + FLOATS:
            assert checker.check((left, right)) == answer(text, left, right), (left, right)


def answer(text: str, v0: Any, v1: Any) -> tuple[()] | None:
    try:
        return () if eval(text, {"math": math, "v0": v0, "v1": v1}) else None
    except (ArithmeticError, TypeError, ValueError):
        return None


@pytest.mark.parametrize("text", TEXTS)
def test_which_have_a_program(text: str) -> None:
    assert bool(write_program([text])) == TEXTS[text]


def test_what_is_too_long_is_left_to_python() -> None:
    assert not write_program([f"v0 != {number}" for number in range(100)])
    assert len(write_program(["v0 + 1 > 2", "v0 + 1 != 5", "v0 + 1 > 2"])) == 9  # written once


def expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["v0", "v1", "2", "3", "-1", "0", f"{BIG}"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
                lambda parts: f"({' '.join(parts)})"
            ),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
                lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
            ),
        ),
        max_leaves=8,
    )


@settings(max_examples=150, deadline=None)
@given(expressions(), st.sampled_from(["==", "<", "<=", "!="]), expressions(), st.data())
def test_any_expression(left: str, sign: str, right: str, data: st.DataObject) -> None:
    from dynacap.guards import make_checker

    text = f"{left} {sign} {right}"
    checker = make_checker(GuardSet([Sizes((X, Y), ((text, text),))]))
    for _ in range(4):
        numbers = data.draw(st.tuples(st.sampled_from(NUMBERS), st.integers(-20, 20)))
        assert checker.check(numbers) == answer(text, *numbers)


def tensors() -> dict[str, Any]:
    class Child(torch.Tensor):
        pass

    return {
        "plain": torch.zeros(4, 6),
        "view": torch.zeros(9, 6)[2:6],
        "transposed": torch.zeros(6, 4).t(),
        "parameter": torch.nn.Parameter(torch.zeros(4, 6)),
        "one dim": torch.zeros(4),
        "no dims": torch.tensor(1.0),
        "seven dims": torch.zeros(4, 6, 1, 1, 1, 1, 2),
        "empty": torch.zeros(0, 6),
        "subclass": torch.zeros(4, 6).as_subclass(Child),
        "meta": torch.zeros(4, 6, device="meta"),
        "text": "plain",
        "nothing": None,
    }


@pytest.mark.parametrize("name", tensors())
@pytest.mark.parametrize(
    "text",
    [
        "v0.shape[0] == 4",
        "v0.shape[1] * 2 == 12",
        "v0.stride(0) == v0.shape[1]",
        "v0.stride(1) == 1",
        "v0.storage_offset() == 12",
        "v0.shape[6] == 2",
    ],
)
def test_tensors(name: str, text: str, make_checker: Callable[..., Checker]) -> None:
    value = tensors()[name]
    checker = make_checker(GuardSet([Sizes((X,), ((text, text),))]))
    try:
        wanted = () if eval(text, {"v0": value}) else None
    except (AttributeError, IndexError):
        wanted = None
    assert checker.check((value,)) == wanted


@pytest.mark.parametrize("name", tensors())
def test_numbers_of_tensors_as_slots(name: str, make_checker: Callable[..., Checker]) -> None:
    value = tensors()[name]
    numbers = [(SIZE, 0), (SIZE, 1), (STRIDE, 1), (OFFSET, 0), (SIZE, 6)]
    for what, dim in numbers:
        checker = make_checker(GuardSet([]), [TensorNumber(X, what, dim)])
        for _ in range(3):
            assert checker.check((value,)) == asked(value, what, dim)


def asked(value: Any, what: str, dim: int) -> tuple[int] | None:
    try:
        return (getattr(value, what)(*([] if what == OFFSET else [dim])),)
    except (AttributeError, IndexError):
        return None


def test_names() -> None:
    assert TensorNumber(X, SIZE, 1).name() == "x.shape[1]"
    assert TensorNumber(X, STRIDE, 0).name() == "x.stride(0)"
    assert TensorNumber(X, OFFSET).name() == "x.storage_offset()"


@pytest.mark.cc
@pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="the C checker is not built")
def test_the_text_is_asked_in_doubt_alone() -> None:
    fast = importlib.import_module("dynacap.guards.fast")
    guard = Sizes((X, Y), (("v0.shape[0] >= 2", ""), ("v0.shape[0] * v1 // 3 % 2 == 0", "")))
    asked: list[Any] = []
    text_itself = guard._test  # type: ignore[attr-defined]

    def ask(*values: Any) -> object:
        asked.append(values)
        return text_itself(*values)

    object.__setattr__(guard, "_test", ask)
    checker = fast.FastChecker(GuardSet([guard]), ())
    x = torch.zeros(6)
    assert checker.check((x, 3)) == ()
    assert checker.check((x, 4)) == ()
    assert checker.check((x, 2)) == ()
    assert checker.check((x[:1], 3)) is None
    assert asked == []
    assert checker.check((x, 2**62)) == (() if 6 * 2**62 // 3 % 2 == 0 else None)
    assert len(asked) == 1

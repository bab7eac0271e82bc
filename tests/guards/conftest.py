"""Both checkers and both tables, for tests that each must pass."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dynacap.guards import Checker, EntryTable, GuardSet, Source
from dynacap.guards.checker import PythonChecker
from dynacap.guards.table import PythonEntryTable

HAS_C = importlib.util.find_spec("dynacap.guards._fastcheck") is not None
NEEDS_C = [pytest.mark.cc, pytest.mark.skipif(not HAS_C, reason="the C checker is not built")]

MakeChecker = Callable[..., Checker]
MakeTable = Callable[[Callable[..., object]], EntryTable]


def _c_checker(guards: GuardSet, slots: Sequence[Source] = ()) -> Checker:
    fast = importlib.import_module("dynacap.guards.fast")
    checker: Checker = fast.FastChecker(guards, slots)
    return checker


def _c_table(miss: Callable[..., object]) -> EntryTable:
    table: EntryTable = importlib.import_module("dynacap.guards.fast").FastEntryTable(miss)
    return table


@pytest.fixture(params=["python", pytest.param("c", marks=NEEDS_C)])
def implementation(request: pytest.FixtureRequest) -> str:
    """Which implementation the test runs on."""
    name: str = request.param
    return name


@pytest.fixture
def make_checker(implementation: str) -> MakeChecker:
    """Makes a checker: guards, slots."""
    makers: dict[str, Any] = {"python": PythonChecker, "c": _c_checker}
    maker: MakeChecker = makers[implementation]
    return maker


@pytest.fixture
def make_table(implementation: str) -> MakeTable:
    """Makes a table: miss."""
    makers: dict[str, Any] = {"python": PythonEntryTable, "c": _c_table}
    maker: MakeTable = makers[implementation]
    return maker

"""Which implementation is chosen, and a loud error where the one asked for is missing."""

import pytest

from dynacap.config import config
from dynacap.errors import DynacapError
from dynacap.guards import choose, make_checker, make_table
from dynacap.guards.checker import PythonChecker
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.table import PythonEntryTable


def test_python_on_request() -> None:
    with config.patch(checker="python"):
        assert choose.chosen() == "python"
        assert isinstance(make_checker(GuardSet()), PythonChecker)
        assert isinstance(make_table(print), PythonEntryTable)


def test_auto_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_c", None)
    with config.patch(checker="auto"):
        assert isinstance(make_checker(GuardSet()), PythonChecker)


def test_c_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_c", None)
    with config.patch(checker="c"), pytest.raises(DynacapError, match=r"pip install -e \."):
        make_checker(GuardSet())


@pytest.mark.cc
@pytest.mark.skipif(choose.C_IMPORT_ERROR is not None, reason="the C checker is not built")
def test_c_where_it_is_built() -> None:
    with config.patch(checker="c"):
        assert choose.chosen() == "c"
        assert not isinstance(make_checker(GuardSet()), PythonChecker)
        assert not isinstance(make_table(print), PythonEntryTable)
    with config.patch(checker="auto"):
        assert choose.chosen() == "c"

"""Which checker and table are used: those in C where they are built, unless told otherwise."""

from collections.abc import Callable, Sequence
from typing import Any

from dynacap.config import config
from dynacap.errors import DynacapError
from dynacap.guards.checker import PythonChecker
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.protocol import Checker, EntryTable
from dynacap.guards.source import Source
from dynacap.guards.table import PythonEntryTable

Implementation = tuple[Callable[..., Any], Callable[..., Any]]

_PYTHON: Implementation = (PythonChecker, PythonEntryTable)
_c: Implementation | None = None
C_IMPORT_ERROR: str | None = None

try:
    from dynacap.guards.fast import FastChecker, FastEntryTable, FastGraphCall
except ImportError as error:
    C_IMPORT_ERROR = str(error)
else:
    _c = (FastChecker, FastEntryTable)


def chosen() -> str:
    """``"c"`` or ``"python"``, by ``config.checker``; an error where C is asked for and missing."""
    if config.checker == "python":
        return "python"
    if _c is not None:
        return "c"
    if config.checker == "c":
        raise DynacapError(
            "config.checker is 'c' but the compiled checker cannot be imported "
            f"({C_IMPORT_ERROR}); build it with `pip install -e .` and a C compiler, "
            "or set config.checker to 'auto'"
        )
    return "python"


def _implementation() -> Implementation:
    wanted = chosen()
    return _c if _c is not None and wanted == "c" else _PYTHON


def make_checker(guards: GuardSet, slots: Sequence[Source] = ()) -> Checker:
    """A checker of these guards that gives these slots."""
    checker: Checker = _implementation()[0](guards, slots)
    return checker


def make_table(miss: Callable[..., object]) -> EntryTable:
    """An empty table that calls ``miss`` where no entry fits."""
    table: EntryTable = _implementation()[1](miss)
    return table


def graph_call_type() -> Any:
    """The class of entries' functions that call the graph from C; None: Python calls it."""
    return FastGraphCall if chosen() == "c" else None

"""Runs functions in pieces, and compares with running them whole."""

import contextlib
import functools
import inspect
import io
import traceback
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

import pytest

from dynacap.resume import RETURN, Point, bind, enter, plain_code, step_code

Program = Callable[[], object]
Check = Callable[[Program], None]

# A step count that no program reaches: every instruction runs by itself.
EVERYWHERE = 10**9


class Splitter:
    """Runs functions by single steps; after `budget` steps the rest runs in one piece."""

    def __init__(self, budget: int) -> None:
        self.left = budget
        self.steps = 0
        self.bound: dict[tuple[CodeType, int], FunctionType] = {}

    def call(self, func: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function in pieces."""
        code = func.__code__
        point, values = enter(code, func.__closure__ or (), bind_arguments(func, args, kwargs))
        cells: tuple[CellType, ...] = values[: len(code.co_cellvars) + len(code.co_freevars)]
        values = values[len(cells) :]
        while self.left > 0:
            self.left -= 1
            self.steps += 1
            step = step_code(code, point)
            number, values = self.function(func, step.code)(*cells, *values)
            outcome = step.outcomes[number]
            if outcome is RETURN:
                return values[0]
            assert isinstance(outcome, Point)
            point = outcome
        return self.function(func, plain_code(code, point))(*cells, *values)

    def function(self, func: FunctionType, code: CodeType) -> FunctionType:
        """Return made code bound to the globals of a function."""
        key = (code, id(func))
        if key not in self.bound:
            self.bound[key] = bind(func, code)
        return self.bound[key]


def bind_arguments(
    func: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments as CPython lays them into the frame."""
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    code = func.__code__
    extra = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount + extra
    return tuple(bound.arguments[name] for name in code.co_varnames[:count])


SPLITTER: list[Splitter | None] = [None]


def inner(func: FunctionType) -> Callable[..., Any]:
    """Mark a function within a program that is to run in pieces too."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        splitter = SPLITTER[0]
        return splitter.call(func, args, kwargs) if splitter else func(*args, **kwargs)

    return call


def described(error: BaseException | None, file: str, seen: tuple[int, ...] = ()) -> object:
    """Return all of an exception that a user can see, its chain included."""
    if error is None or id(error) in seen:
        return None
    seen = (*seen, id(error))
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return {
        "type": type(error),
        "text": str(error),
        "lines": [
            (each.name, each.lineno, each.colno, each.end_colno)
            for each in traceback.extract_tb(error.__traceback__)
            if each.filename == file
        ],
        "context": described(error.__context__, file, seen),
        "cause": described(error.__cause__, file, seen),
        "quiet": error.__suppress_context__,
        "parts": [described(each, file, seen) for each in parts],
    }


def observed(program: Program, splitter: Splitter | None) -> object:
    """Run a program and return what it gives: result, exception, printed text."""
    file = inspect.getsourcefile(program)
    assert file is not None
    printed = io.StringIO()
    SPLITTER[0] = splitter
    result: object = None
    raised: object = None
    try:
        with contextlib.redirect_stdout(printed):
            result = inner(program)() if isinstance(program, FunctionType) else program()
    except BaseException as error:
        raised = described(error, file)
    finally:
        SPLITTER[0] = None
    return {"result": repr(result), "raised": raised, "printed": printed.getvalue()}


def check_program(program: Program) -> None:
    """Run a program whole, split everywhere, and whole from each step on; all must agree."""
    expected = observed(program, None)
    splitter = Splitter(EVERYWHERE)
    assert observed(program, splitter) == expected
    assert splitter.steps > 0
    for budget in range(splitter.steps):
        assert observed(program, Splitter(budget)) == expected, f"whole after {budget} steps"


@pytest.fixture
def check() -> Check:
    """The comparison of a program in pieces with the program whole."""
    return check_program


class Pieces:
    """Runs functions in pieces while it is entered."""

    wrap = staticmethod(inner)

    def __init__(self) -> None:
        self.steps = 0

    def __enter__(self) -> None:
        SPLITTER[0] = Splitter(EVERYWHERE)

    def __exit__(self, *info: object) -> None:
        assert SPLITTER[0] is not None
        self.steps = SPLITTER[0].steps
        SPLITTER[0] = None


@pytest.fixture
def pieces() -> Pieces:
    """A decorator for functions, and the time in which they run in pieces."""
    return Pieces()


@pytest.fixture(autouse=True)
def _inner(request: pytest.FixtureRequest) -> None:
    """Give programs the decorator `inner`, under the global name that their file declares."""
    if hasattr(request.module, "inner"):
        request.module.inner = inner


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that wants a `program` with each function of its file named `program_...`."""
    if "program" in metafunc.fixturenames:
        found = {
            name.removeprefix("program_"): each
            for name, each in vars(metafunc.module).items()
            if name.startswith("program_")
        }
        metafunc.parametrize("program", found.values(), ids=found)

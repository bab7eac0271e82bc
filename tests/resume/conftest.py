"""Runs functions in pieces, and compares with running them whole."""

import contextlib
import functools
import inspect
import io
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import pytest

from dynacap.opcodes import decode
from dynacap.opcodes.canonical import pops
from dynacap.opcodes.versions import version
from dynacap.resume import (
    RETURN,
    Point,
    Step,
    bind,
    call_handling,
    enter,
    plain_code,
    step_code,
    throw_code,
)
from dynacap.resume.layout import GENERATOR_FLAGS
from dynacap.resume.step import refusal

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
        self.first_at: dict[tuple[CodeType, Point], int] = {}

    def call(self, func: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function in pieces."""
        code = func.__code__
        point, values = enter(code, func.__closure__ or (), bind_arguments(func, args, kwargs))
        cells: tuple[CellType, ...] = values[: len(code.co_cellvars) + len(code.co_freevars)]
        values = values[len(cells) :]
        while self.left > 0 and not refusal(code, point.index):
            self.left -= 1
            self.first_at.setdefault((code, point), self.steps)
            self.steps += 1
            step = step_code(code, point)
            number, values = self.function(func, step.code)([*cells, *values])
            outcome = step.outcomes[number]
            if outcome is RETURN:
                return values[0]
            assert isinstance(outcome, Point)
            point = outcome
        return self.function(func, plain_code(code, point))([*cells, *values])

    def function(self, func: FunctionType, code: CodeType) -> FunctionType:
        """Return made code bound to the globals of a function."""
        key = (code, id(func))
        if key not in self.bound:
            self.bound[key] = bind(func, code)
        return self.bound[key]


class Rest(Step):
    """Code that runs a frame to its end and gives its result as it is."""


@dataclass
class Suspended:
    """A frame that is not running: its function, where it stands, and its values there."""

    func: FunctionType
    point: Point
    cells: tuple[CellType, ...]
    values: tuple[Any, ...]

    def handled(self) -> BaseException | None:
        """Return the exception that the frame is handling."""
        if not self.point.excs:
            return None
        nulls = set(self.point.nulls)
        below = sum(place not in nulls for place in range(self.point.excs[-1]))
        found = self.values[len(self.point.bound) + below]
        assert isinstance(found, BaseException)
        return found


class Chain(Splitter):
    """Runs functions by single steps, each called function of the same file as a frame of its own.

    No frame waits on the interpreter's stack for another: results and exceptions are handed on.
    """

    def __init__(self) -> None:
        super().__init__(EVERYWHERE)
        self.frames: list[Suspended] = []
        self.deepest = 0

    def call(self, func: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function in pieces."""
        outer, self.frames = self.frames, []
        try:
            self.push(func, args, kwargs)
            while True:
                ended, result = self.advance()
                if ended:
                    return result
        finally:
            self.frames = outer

    def push(self, func: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a frame at its start."""
        code = func.__code__
        point, values = enter(code, func.__closure__ or (), bind_arguments(func, args, kwargs))
        count = len(code.co_cellvars) + len(code.co_freevars)
        self.frames.append(Suspended(func, point, values[:count], values[count:]))
        self.deepest = max(self.deepest, len(self.frames))

    def advance(self) -> tuple[bool, Any]:
        """Run one instruction; say whether the outermost frame has ended, and its result."""
        frame = self.frames[-1]
        if self.enters_call(frame):
            return False, None
        try:
            ended, result = self.run(frame, self.code_at(frame))
        except BaseException as error:
            return self.throw(error)
        if not ended:
            return False, None
        self.frames.pop()
        if not self.frames:
            return True, result
        self.frames[-1].values += (result,)
        return False, None

    def code_at(self, frame: Suspended) -> Step:
        """Return code for one instruction, or to the end where there is none for that alone."""
        code, point = frame.func.__code__, frame.point
        if not refusal(code, point.index):
            return step_code(code, point)
        return Rest(plain_code(code, point), (RETURN,))

    def throw(self, error: BaseException) -> tuple[bool, Any]:
        """Hand an exception out of the innermost frame to those that wait for it."""
        while True:
            left = self.frames.pop()
            # The runner's own frames lie before those of the program.
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename != left.func.__code__.co_filename:
                trace = trace.tb_next
            error.__traceback__ = trace
            if not self.frames:
                raise error
            frame = self.frames[-1]
            frame.values += (error,)
            # Comes back with the error itself where the frame has no handler for it.
            with contextlib.suppress(type(error)):
                return self.run(frame, throw_code(frame.func.__code__, frame.point))

    def run(self, frame: Suspended, step: Step) -> tuple[bool, Any]:
        """Run a step of a frame under the exception that those around it are handling."""
        self.steps += 1
        piece = self.function(frame.func, step.code)
        values = [*frame.cells, *frame.values]
        handled = next(filter(None, (each.handled() for each in self.frames[-2::-1])), None)
        if handled is None or len(self.frames) == 1:
            result = piece(values)
        else:
            result = call_handling(handled, piece, values)
        number, frame.values = (0, (result,)) if isinstance(step, Rest) else result
        outcome = step.outcomes[number]
        if outcome is RETURN:
            return True, frame.values[0]
        assert isinstance(outcome, Point)
        frame.point = outcome
        return False, None

    def enters_call(self, frame: Suspended) -> bool:
        """Add a frame if the next instruction calls a function of the same file."""
        code, point = frame.func.__code__, frame.point
        call = decode(code).instructions[point.index]
        if call.op not in ("CALL", "CALL_KW"):
            return False
        argc, names = call.arg if call.op == "CALL" else (call.arg, frame.values[-1])
        below = point.depth - pops(call)
        if below + (not version().null_first) not in point.nulls:
            return False
        split = len(frame.values) - pops(call) + 1
        called, *args = frame.values[split : split + argc + 1]
        if isinstance(called, MethodType):
            called, args = called.__func__, [called.__self__, *args]
        if (
            not isinstance(called, FunctionType)
            or called.__code__.co_flags & GENERATOR_FLAGS
            or (called.__code__.co_filename != code.co_filename)
        ):
            return False
        count = len(args) - len(names)
        nulls = tuple(place for place in point.nulls if place < below)
        after = Point(point.index + 1, below + 1, nulls, point.excs, point.bound)
        frame.point, frame.values = after, frame.values[:split]
        self.push(called, tuple(args[:count]), dict(zip(names, args[count:], strict=True)))
        return True


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
    """Run a program whole, split everywhere, and whole from each point on; all must agree."""
    expected = observed(program, None)
    assert observed(program, Chain()) == expected
    splitter = Splitter(EVERYWHERE)
    assert observed(program, splitter) == expected
    assert splitter.steps > 0
    for budget in splitter.first_at.values():
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

"""The made code objects: they hold together, are refused where they must be, and leak nothing."""

import _thread
import contextlib
import functools
import gc
import operator
import signal
import tempfile
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from dynacap.errors import ResumeError
from dynacap.hook.bodies import body
from dynacap.opcodes import Code, decode
from dynacap.opcodes.analysis import Kind
from dynacap.resume import Point, bind, enter, plain_code, step_code
from dynacap.resume.layout import GENERATOR_FLAGS
from dynacap.resume.point import argument_cells, stack_kinds
from dynacap.resume.step import refusal


def functions_of(module: ModuleType) -> Iterator[CodeType]:
    """Yield the code of every function in a module's source."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        todo = [compile(file.read(), module.__file__, "exec")]
    while todo:
        code = todo.pop()
        if code.co_flags & 1:
            yield code
        todo.extend(each for each in code.co_consts if isinstance(each, CodeType))


def points_of(code: CodeType) -> Iterator[Point]:
    """Yield a point for each instruction, all locals bound, each NULL that may be one."""
    taken = set(argument_cells(code).values())
    bound = tuple(each for each in range(code.co_nlocals) if each not in taken)
    for each in decode(code).instructions:
        if not decode(code).is_boundary(each.index) or refusal(code, each.index):
            continue
        try:
            kinds = stack_kinds(code, each.index)
        except ResumeError:
            continue
        unsure = (Kind.NULL, Kind.MAYBE_NULL)
        nulls = tuple(place for place, kind in enumerate(kinds) if kind in unsure)
        excs = tuple(place for place, kind in enumerate(kinds) if kind is Kind.SAVED)
        yield Point(each.index, len(kinds), nulls, excs, bound)


@pytest.mark.parametrize("module", [contextlib, tempfile], ids=lambda m: m.__name__)
def test_made_code_holds_together(module: ModuleType, verify: Callable[[Code], None]) -> None:
    """Stack depths, exception tables and jumps of code for every point of real functions."""
    made = 0
    for code in functions_of(module):
        for point in points_of(code):
            verify(decode(step_code(code, point).code))
            made += 1
            # An offset on the stack comes out of an addition, where the original has pushed it.
            if not code.co_flags & GENERATOR_FLAGS and (
                Kind.LASTI not in stack_kinds(code, point.index)
            ):
                verify(decode(plain_code(code, point)))
    assert made > 500


def wide(count: int) -> FunctionType:
    """Return a function with so many locals and a few cells."""
    names = [f"v{number}" for number in range(count)]
    source = [
        "def f(a, b):",
        *(f"    {name} = {number} + b" for number, name in enumerate(names)),
        "    use = lambda: (a, v1)",
        f"    return a, sum([{', '.join(names[:: max(1, count // 20)])}]), use(), [b, (b, use())]",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(source), namespace)
    made = namespace["f"]
    assert isinstance(made, FunctionType)
    return made


def plain_or_reason(code: CodeType, point: Point) -> CodeType | None:
    """Return the plain code, or None where it has to be refused."""
    if code.co_nlocals + len(code.co_cellvars) > 250:
        with contextlib.suppress(ResumeError):
            return plain_code(code, point)
        return None
    return plain_code(code, point)


@pytest.mark.parametrize("count", [3, 200, 260])
def test_many_locals(count: int) -> None:
    """Operands that need a prefix, also once they have moved; or a clear refusal."""
    func = wide(count)
    code = func.__code__
    expected = func(1, 2)
    cells = len(code.co_cellvars)
    point, values = enter(code, (), (1, 2))
    while True:
        if (made := plain_or_reason(code, point)) is not None:
            assert bind(func, made)([*values]) == expected
        step = step_code(code, point)
        number, rest = bind(func, step.code)([*values])
        outcome = step.outcomes[number]
        if not isinstance(outcome, Point):
            assert rest == (expected,)
            return
        point, values = outcome, (*values[:cells], *rest)


def test_a_point_that_does_not_fit_is_refused() -> None:
    def sample(f: Callable[[int], int]) -> int:
        return f(1)

    code = sample.__code__
    call = next(each.index for each in decode(code).instructions if each.op == "CALL")
    for point in (
        Point(call, 2, bound=(0,)),
        Point(call, 3, bound=(0,)),
        Point(call, 3, nulls=(0,), excs=(1,), bound=(0,)),
    ):
        with pytest.raises(ResumeError, match="does not fit"):
            step_code(code, point)
        with pytest.raises(ResumeError, match="does not fit"):
            plain_code(code, point)


@pytest.mark.parametrize("bound", [(0, 1), (2, 1), (1, 1), (1, 9)])
def test_wrong_locals_are_refused(bound: tuple[int, ...]) -> None:
    """The first is the slot of a cell; then out of order, twice, and no local at all."""

    def sample(a: int, b: int, c: int) -> Callable[[], int]:
        return lambda: a + b + c if b else a

    def other(a: int, b: int, c: int) -> Callable[[], int]:
        c = b
        return lambda: a + c * 0

    for code in (sample.__code__, other.__code__):
        with pytest.raises(ResumeError, match="no local of its own"):
            plain_code(code, Point(len(decode(code)) - 1, 1, bound=bound))


BODY = """
class Body:
    x = [given]
    for each in 1, 2, 3:
        x.append(each)
    try:
        x[9]
    except IndexError as error:
        text = str(error)
    squares = [each * each for each in x if each]
    names = sorted(locals())
    def method(self): return __class__
"""


@pytest.mark.parametrize("budget", [1, 3, 10, 20, 40, 80, 1000])
def test_class_bodies_go_on_in_their_namespace(budget: int) -> None:
    code = next(
        each for each in compile(BODY, "<sample>", "exec").co_consts if isinstance(each, CodeType)
    )
    function = FunctionType(code, {"given": 5, "__name__": "somewhere"})
    namespace: dict[str, Any] = {}
    point, values = enter(code, (), ())
    cells, values = values[: len(code.co_cellvars)], values[len(code.co_cellvars) :]
    result: Any = ...
    while result is ... and budget:
        budget -= 1
        step = step_code(code, point)
        number, values = body(function, step.code, namespace)([*cells, *values])
        outcome = step.outcomes[number]
        if isinstance(outcome, Point):
            point = outcome
        else:
            (result,) = values
    if result is ...:
        result = body(function, plain_code(code, point), namespace)([*cells, *values])
    assert result is cells[code.co_cellvars.index("__class__")]
    assert namespace["__classcell__"] is result
    assert namespace["x"] == [5, 1, 2, 3]
    assert namespace["squares"] == [25, 1, 4, 9]
    assert namespace["text"] == "list index out of range"
    known = {"__module__", "__qualname__", "__firstlineno__", "__static_attributes__"}
    assert set(namespace["names"]) - known == {"x", "each", "text", "squares"}


def test_made_code_is_kept() -> None:
    def sample(a: int) -> int:
        return a + 1

    point = Point(1, bound=(0,))
    assert plain_code(sample.__code__, point) is plain_code(sample.__code__, point)
    assert step_code(sample.__code__, point) is step_code(sample.__code__, Point(1, bound=(0,)))


def test_all_goes_when_the_function_goes() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return (lambda: x)\n", namespace)
    func = namespace.pop("f")
    code = func.__code__
    point, values = enter(code, (), (1,))
    bind(func, plain_code(code, point))([*values])
    step = step_code(code, point)
    bind(func, step.code)([*values])
    gone = weakref.ref(code)
    del func, code, step
    gc.collect()
    assert gone() is None


def interrupted(log: list[str]) -> str:
    """Wait to be interrupted, as the user's code would."""
    try:
        log.append("body")
        log.append("more")
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        log.append("finally")
    return "done"


def test_a_signal_finds_the_users_handler() -> None:
    """A signal that comes between two pieces is delivered where the frame stands."""
    code = interrupted.__code__
    middle = next(each.index for each in decode(code).instructions if each.op == "POP_TOP")
    point = Point(middle, 1, bound=(0,))
    plain = bind(interrupted, plain_code(code, point))
    step = step_code(code, point)
    stepped = bind(interrupted, step.code)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        log: list[str] = []
        # All in C, so that the next Python code to run is the piece.
        piece = functools.partial(plain, [log, None])
        results = list(map(operator.call, [_thread.interrupt_main, piece]))
        assert results[1] == "interrupted"
        assert log == ["finally"]
        piece = functools.partial(stepped, [log, None])
        results = list(map(operator.call, [_thread.interrupt_main, piece]))
        number, values = results[1]
    finally:
        signal.signal(signal.SIGINT, before)
    outcome = step.outcomes[number]
    assert isinstance(outcome, Point)
    assert isinstance(values[-1], KeyboardInterrupt)
    handler = decode(code).handlers[middle]
    assert handler is not None
    assert outcome.index == handler.target

"""Generators put aside at a yield and going on as real ones."""

# What these programs do wrong, or in a way that no type describes, is their purpose.
# mypy: ignore-errors
# ruff: noqa: E731, F821

import contextlib
import inspect
import sys
import traceback

import pytest

from dynacap.errors import ResumeError
from dynacap.opcodes import decode
from dynacap.resume import (
    RETURN,
    Point,
    bind,
    enter,
    generator_code,
    make_generator,
    plain_code,
    step_code,
)


def advance(func, yields):
    """Run a generator function by steps to its n-th yield and make a real generator there."""
    code = func.__code__
    instructions = decode(code).instructions
    arguments = tuple(inspect.signature(func).bind().arguments.values())
    defaults = func.__defaults__ or ()
    point, values = enter(code, func.__closure__ or (), arguments + defaults)
    count = len(code.co_cellvars) + len(code.co_freevars)
    cells, values = values[:count], values[count:]
    while True:
        op = instructions[point.index].op
        if op == "YIELD_VALUE":
            *rest, value = values
            yields -= 1
            if yields == 0:
                under = Point(point.index, point.depth - 1, point.nulls, point.excs, point.bound)
                return value, make_generator(func, generator_code(code, under), cells, tuple(rest))
            values = (*rest, None)
            point = Point(point.index + 1, point.depth, point.nulls, point.excs, point.bound)
        elif op == "SEND":
            point, values = sent(instructions[point.index], point, values)
        else:
            step = step_code(code, point)
            number, values = bind(func, step.code)([*cells, *values])
            if step.outcomes[number] is RETURN:
                return None
            point = step.outcomes[number]


def sent(instruction, point, values):
    """Do what SEND does with None."""
    *rest, iterator, _ = values
    try:
        value = next(iterator)
    except StopIteration as stop:
        kept = (iterator,) if instruction.arg else ()
        depth = point.depth - 1 + len(kept)
        goal = Point(instruction.target, depth, point.nulls, point.excs, point.bound)
        return goal, (*rest, *kept, stop.value)
    goal = Point(point.index + 1, point.depth, point.nulls, point.excs, point.bound)
    return goal, (*rest, iterator, value)


SCRIPTS = {
    "runs_on": [("next",)] * 8,
    "sends": [("send", 5), ("send", "x"), ("send", None), ("send", 7)],
    "throws": [("throw", ValueError("thrown")), ("next",), ("next",)],
    "throws_other": [("throw", KeyError("thrown")), ("throw", OSError("again")), ("next",)],
    "throws_late": [("next",), ("throw", ValueError("thrown")), ("send", 1), ("next",)],
    "throws_stop": [("throw", StopIteration(3)), ("next",)],
    "closes": [("close",), ("next",)],
    "closes_late": [("next",), ("close",), ("next",)],
    "dropped": [],
}


def play(generator, script):
    """Do to a generator what a script says, and record all that is seen."""
    seen = []
    for action, *arguments in [*script, ("look",)]:
        seen.append(look(generator))
        try:
            if action == "next":
                seen.append(next(generator))
            elif action != "look":
                copied = [copy_of(each) for each in arguments]
                seen.append(getattr(generator, action)(*copied))
        except BaseException as error:
            seen.append((type(error), error.args, repr(error.__context__), lines(error)))
            seen.append(type(error.__cause__))
    return seen


def copy_of(value):
    return type(value)(*value.args) if isinstance(value, BaseException) else value


def look(generator):
    frame = generator.gi_frame
    inner_one = generator.gi_yieldfrom
    return (
        generator.__name__,
        generator.__qualname__,
        frame and frame.f_lineno,
        frame and sorted(frame.f_locals),
        inner_one and type(inner_one).__name__,
        inspect.getgeneratorstate(generator),
    )


def lines(error):
    found = traceback.extract_tb(error.__traceback__)
    return [(each.name, each.lineno, each.colno) for each in found if each.name != "play"]


def program_simple(n=3):
    for i in range(n):
        got = yield i
        print("got", got)
    return "done"


def program_try():
    while True:
        try:
            x = yield 1
            print("x", x)
            y = yield 2
            print("y", y, sys.exc_info()[1])
        except ValueError as error:
            print("caught", error)
            z = yield "handled"
            print("z", z, sys.exc_info()[1])
        else:
            return x
        finally:
            print("finally", sys.exc_info()[1])


def program_with():
    @contextlib.contextmanager
    def manager(name):
        print("enter", name)
        try:
            yield name
        except KeyError:
            print("suppressed", name)
        finally:
            print("exit", name)

    with manager("a") as a:
        yield a
        with manager("b") as b:
            yield [a, (yield b)]
    yield "after"


def program_stack(n=2):
    text = "k"
    return [n, (yield 1), max((yield 2), 3, key=lambda k: str(k)), {text: (yield n)}]


def program_delegates(n=2):
    def part(k):
        try:
            got = yield k
            while got:
                got = yield got
        except ValueError as error:
            print("part caught", error)
            yield "in part"
            return "part's value"
        finally:
            print("part ends")
        return k * 2

    total = yield from part(n)
    print("total", total)
    rest = yield from [7, 8]
    print("rest", rest)
    return total


def program_delegates_in_handler():
    try:
        raise OSError("outer")
    except OSError:
        print(sys.exc_info()[1])
        x = [1, (yield from program_simple(1)), (yield "y")]
        print(x, sys.exc_info()[1])
        try:
            yield "inner"
        finally:
            print(sys.exc_info()[1])


def program_cells(a=1, b=2):
    use = lambda: a + b
    a = yield use()
    del b
    yield [a, (yield "more"), sorted(locals())]


def program_yields_in_finally():
    try:
        yield 1
        raise KeyError("body")
    finally:
        got = yield "cleaning"
        print("got", got, sys.exc_info()[1])


# One program yields when it is told to close, and Python says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_goes_on(program, script, capsys):
    yields = 1
    while True:
        original = program()
        try:
            expected = [next(original) for _ in range(yields)][-1]
        except (StopIteration, KeyError):
            break
        whole = capsys.readouterr().out
        value, made = advance(program, yields)
        assert capsys.readouterr().out == whole
        assert value == expected
        expected = play(original, script)
        del original
        whole = capsys.readouterr().out
        assert play(made, script) == expected
        del made
        assert capsys.readouterr().out == whole
        yields += 1
    assert yields > 1


def test_only_generators_at_a_yield():
    def plain():
        return 1

    async def coroutine():
        return 1

    code = program_simple.__code__
    with pytest.raises(ResumeError):
        plain_code(code, Point(2, bound=(0,)))
    with pytest.raises(ResumeError):
        generator_code(plain.__code__, Point(0))
    with pytest.raises(ResumeError):
        generator_code(coroutine.__code__, Point(0))

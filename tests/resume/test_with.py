"""`with`, and exceptions on their way through several frames, run in pieces."""

# What these programs do wrong, or in a way that no type describes, is their purpose.
# mypy: ignore-errors
# ruff: noqa: B904

import contextlib
import sys
import traceback
from collections.abc import Callable


def test_in_pieces(program: Callable[[], object], check: Callable[..., None]) -> None:
    check(program)


def fail(text="deep"):
    raise ValueError(text)


class Manager:
    def __init__(self, name, quiet=False, fails=()):
        self.name, self.quiet, self.fails = name, quiet, fails

    def __enter__(self):
        print("enter", self.name)
        if "enter" in self.fails:
            fail("in enter")
        return self.name

    def __exit__(self, *info):
        print("exit", self.name, info[0], info[1], info[2] is None)
        if "exit" in self.fails:
            fail("in exit")
        return self.quiet


def handles_in_called():
    print(sys.exc_info()[1])
    try:
        fail("in called")
    except ValueError as error:
        print(repr(error.__context__))
    try:
        raise
    except (ValueError, KeyError) as error:
        print("again", repr(error))
        raise OSError("out of called")


def program_with():
    with Manager("a") as a, Manager("b") as b:
        print(a, b)
    with Manager("c"):
        return "result"


def program_with_raises():
    with Manager("a"), Manager("b"):
        fail()


def program_with_suppresses():
    with Manager("a", quiet=True) as a:
        x = a
        fail()
        x = "never"
    with Manager("b", quiet=True), Manager("c"):
        raise KeyError(x)
    return x


def program_with_exit_raises():
    with Manager("a", fails=["exit"]):
        raise KeyError("first")


def program_with_exit_raises_after_success():
    with Manager("a", quiet=True), Manager("b", fails=["exit"]):
        print("body")
    return "end"


def program_with_enter_raises():
    with Manager("a", quiet=True), Manager("b", fails=["enter"]):
        print("never")
    return "end"


def program_with_in_loop():
    got = []
    for i in range(4):
        with Manager(i, quiet=i == 2) as name:
            if i == 0:
                continue
            if i == 2:
                fail(i)
            if i == 3:
                break
            got.append(name)
    return got


def program_with_in_handler():
    try:
        fail("outer")
    except ValueError:
        with Manager("a", quiet=True):
            raise KeyError("inner")
        print(sys.exc_info()[1])
        with Manager("b"):
            raise


def program_with_in_finally():
    try:
        fail("outer")
    finally:
        with Manager("a"), contextlib.suppress(KeyError):
            raise KeyError("inner")
        print(sys.exc_info()[1])


def program_deep_unwinding():
    results = []
    for i in range(3):
        try:
            with Manager(i, quiet=i == 1):
                try:
                    fail(i)
                except ValueError:
                    if i == 2:
                        raise
                    raise KeyError(i)
                finally:
                    results.append(("finally", i))
        except KeyError as error:
            results.append((error.args, repr(error.__context__)))
    return results


def program_exceptions_through_frames():
    def third(k):
        if k:
            return third(k - 1)
        return [1, fail("third")]

    def second(k):
        with Manager(k):
            return max(1, third(k))

    try:
        second(1)
    except ValueError as error:
        print(traceback.format_exc())
        try:
            handles_in_called()
        except OSError as other:
            print(repr(other.__context__), other.__context__ is error, sys.exc_info()[1] is other)
        print(sys.exc_info()[1] is error)
        return third(2)


def program_finally_through_frames():
    def clean():
        print("cleaning", sys.exc_info()[1])
        return contextlib.nullcontext(3)

    def body(fails):
        try:
            with Manager("body"):
                return fail("body") if fails else 1
        finally:
            with clean() as x:
                print(x)

    for fails in (False, True):
        try:
            print(body(fails))
        finally:
            print(sys.exc_info()[1], type(clean()))

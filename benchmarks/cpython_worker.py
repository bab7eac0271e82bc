"""Runs the tests of one module of CPython's `test` package in this process, and writes what it saw.

    python cpython_worker.py MODULE OUT --mode plain|census|capture [--done FILE] [--test TEXT]
    python cpython_worker.py --serve     the same for each line of JSON that comes in, in a fork

OUT gets one JSON object on a line, at once: a test that starts, its verdict, and at the end the
frames.  So a test that kills the process is known by what it left.  `plain` runs without dynacap;
`census` too, and notes which code objects ran a frame; `capture` captures every frame of the test
package's own code.  Only `capture` imports dynacap; a process that serves has done so once for all.
"""

from __future__ import annotations

import argparse
import builtins
import faulthandler
import gc
import importlib
import inspect
import json
import os
import random
import signal
import sys
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import test.support

WALL = 20  # how much longer a test may take on the clock than it may use the processor
MODES = ("plain", "census", "capture")
TESTS = str(Path(test.__file__).parent) + os.sep
_MADE_BY_TESTS = ("<doctest ", "<string>", "<test")
_OTHERS = frozenset({"dynacap", "torch", "unittest", "dataclasses", "enum"})
_SHOWN = (TESTS, *_MADE_BY_TESTS)
Key = tuple[str, str, int]
_BUILTINS = dict(vars(builtins))


def is_of_tests(code: CodeType, globals_: dict[str, Any]) -> bool:
    """Whether code belongs to the test package, or was made by its tests.

    Made from text is code of all kinds of modules, such as the methods of their dataclasses; that
    of named tuples, our own among them, says nothing of who asked for it.
    """
    if code.co_filename.startswith(TESTS):
        return True
    owner = str(globals_.get("__name__", "")).partition(".")[0]
    others = owner in _OTHERS or owner.startswith("namedtuple_")
    return code.co_filename.startswith(_MADE_BY_TESTS) and not others


def key_of(code: CodeType) -> Key:
    """What names a code object in another process."""
    return (code.co_filename.removeprefix(TESTS), code.co_qualname, code.co_firstlineno)


def kind_of(code: CodeType) -> str:
    """Why capture may not start at this code: what it is, in a word; empty for a function."""
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "coroutine"
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ITERABLE_COROUTINE):
        return "generator"
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return "module body" if code.co_name == "<module>" else "class body"
    return ""


def _capture_all() -> Any:
    from dynacap.testing import CaptureAll  # the other modes run without dynacap

    return CaptureAll


class Census:
    """Notes every code object that runs a frame."""

    def __init__(self) -> None:
        self.codes: dict[CodeType, None] = {}
        self._told = 0

    def active(self) -> AbstractContextManager[None]:
        """Set again for each test, since some tests set a profile function of their own."""
        sys.setprofile(self._see)
        return nullcontext()

    def _see(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and is_of_tests(frame.f_code, frame.f_globals):
            self.codes[frame.f_code] = None

    def report(self) -> dict[str, Any]:
        """Each code object that is new: its key, and what it is."""
        sys.setprofile(None)
        new = list(self.codes)[self._told :]
        self._told += len(new)
        return {"codes": [(*key_of(code), kind_of(code)) for code in new]}


class Capture:
    """Captures every function of the tests' own code."""

    def __init__(self) -> None:
        CaptureAll = _capture_all()
        self.all = CaptureAll(_wanted)
        self._told: dict[CodeType, Any] = {}

    def active(self) -> AbstractContextManager[None]:
        """Active again for each test, since tests of tracing end it."""
        gc.freeze()  # or each collection that a test asks for goes through torch, and all captures
        context: AbstractContextManager[None] = self.all.active()
        return context

    def take(self) -> None:
        """See that functions of the test package which are called once are captured."""
        from dynacap.testing import functions_in

        for name, module in list(sys.modules.items()):
            if name.startswith("test."):
                for function in functions_in(vars(module), name):
                    self.all.take(function)

    def report(self) -> dict[str, Any]:
        """What became of the code objects that were offered, as far as it was not told yet."""
        frames = []
        for code, each in self.all.frames.items():
            state = (each.kind, dict(each.plain), dict(each.breaks))
            if code.co_filename.startswith(_SHOWN) and self._told.get(code) != state:
                self._told[code] = state
                frames.append((*key_of(code), *state))
        errors, self.all.internal_errors = dict(self.all.internal_errors), Counter()
        seconds, self.all.seconds = self.all.seconds, 0.0
        return {"frames": frames, "internal": errors, "capturing": seconds}


def _wanted(function: FunctionType, code: CodeType) -> bool:
    return is_of_tests(code, function.__globals__)


class Log(unittest.TestResult):
    """Writes each verdict as soon as it is known; holds capture active during each test."""

    def __init__(
        self,
        out: Any,
        active: Callable[[], AbstractContextManager[None]],
        new_frames: Callable[[], dict[str, Any]],
        limit: float,
    ):
        super().__init__()
        self.out = out
        self.limit = limit
        self._active = active
        self._new_frames = new_frames
        self._context: AbstractContextManager[None] | None = None
        self._verdict = ("ok", "")
        self._began = 0.0

    def write(self, **fields: Any) -> None:
        """A line of the output."""
        os.write(self.out, (json.dumps(fields) + "\n").encode())

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.write(start=test.id())
        self._verdict = ("ok", "")
        random.seed(0)
        self._began = time.process_time()
        faulthandler.dump_traceback_later(WALL * self.limit, exit=True)
        signal.setitimer(signal.ITIMER_PROF, self.limit)
        self._context = self._active()
        self._context.__enter__()

    def stopTest(self, test: unittest.TestCase) -> None:
        vars(builtins).update(_BUILTINS)
        context, self._context = self._context, None
        if context is not None:
            context.__exit__(None, None, None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)
        verdict, detail = self._verdict
        took = round(time.process_time() - self._began, 2)
        new = self._new_frames()
        self.write(test=test.id(), verdict=verdict, detail=detail, took=took, **new)

    def _note(self, verdict: str, error: Any = None, detail: str = "") -> None:
        vars(builtins).update(_BUILTINS)  # which a test that goes wrong may leave changed
        if self._verdict[0] in ("ok", "skip"):  # the first that went wrong counts
            lines = traceback.format_exception(*error) if error is not None else [detail]
            self._verdict = (verdict, "".join(lines)[-6000:])

    def addError(self, test: Any, err: Any) -> None:
        if self._context is None:  # in a fixture of a class or module
            self.write(
                test=test.id(), verdict="error", detail="".join(traceback.format_exception(*err))
            )
        self._note("error", err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._note("fail", err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self._note("fail" if failed else "error", err)

    def addSkip(self, test: Any, reason: str) -> None:
        if self._context is None:
            self.write(test=test.id(), verdict="skip", detail=reason)
        self._note("skip", detail=reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._note("expected failure", err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._note("unexpected success")


def leaves(suite: Any) -> Iterator[Any]:
    """The tests of a suite, one by one."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from leaves(each)
        else:
            yield each


def chosen(suite: Any, text: str, done: set[str]) -> unittest.TestSuite:
    """The tests still to do, those with the text in their name."""
    return unittest.TestSuite(
        each for each in leaves(suite) if text in each.id() and each.id() not in done
    )


def run(options: argparse.Namespace, out: int) -> None:
    """Load the module and run its tests."""
    counter: Any = {"plain": None, "census": Census, "capture": Capture}[options.mode]
    counter = counter() if counter is not None else None
    active = counter.active if counter is not None else nullcontext
    with active():
        module = importlib.import_module(f"test.{options.module}")
    if isinstance(counter, Capture):
        counter.take()
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    done = set(Path(options.done).read_text().splitlines()) if options.done else set()
    log = Log(out, active, counter.report if counter is not None else dict, options.limit)
    started = time.perf_counter()
    chosen(suite, options.test, done).run(log)
    log.write(seconds=time.perf_counter() - started)
    if counter is not None:
        log.write(**counter.report())


def serve() -> list[str] | None:
    """The arguments of a request, in a process of its own for each; None when there are no more.

    What serves waits for that process, ends it when its time is over, and writes its exit code.
    """
    _capture_all()
    for request in map(json.loads, sys.stdin):
        child = os.fork()
        if not child:
            os.chdir(request["folder"])
            for descriptor, path in enumerate((os.devnull, request["log"], request["log"])):
                opened = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                os.dup2(opened, descriptor)
                os.close(opened)
            return list(request["arguments"])
        print(json.dumps(_waited(child, request["seconds"])), flush=True)
    return None


def _waited(child: int, seconds: float) -> int | None:
    """The exit code of a child; None for one that had to be ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> None:
    """Run with the tests' own output thrown away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("out")
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--done", default="", help="a file with the tests that are left out")
    parser.add_argument("--test", default="", help="only tests with this in their name")
    parser.add_argument("--limit", type=float, default=20, help="CPU seconds for one test")
    arguments = serve() if sys.argv[1:] == ["--serve"] else sys.argv[1:]
    if arguments is None:
        return
    options = parser.parse_args(arguments)
    sys.argv = sys.argv[:1]
    test.support.use_resources = []
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    run(options, os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


if __name__ == "__main__":
    main()

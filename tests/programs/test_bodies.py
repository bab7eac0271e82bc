"""Bodies of classes and modules, captured with the functions around them."""

from __future__ import annotations

import contextlib
import enum
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynacap.config import config
from dynacap.hook import choose_hook
from dynacap.testing import CaptureAll

Program = Callable[[], Any]


def _present() -> Iterator[str]:
    for kind in ("pep523", "settrace"):
        with contextlib.suppress(ImportError):
            choose_hook(kind)
            yield kind


@pytest.fixture(params=_present())
def everything(request: pytest.FixtureRequest) -> Iterator[CaptureAll]:
    """Capture of every frame of this file, by each hook."""
    with config.patch(hook=request.param):
        yield CaptureAll(lambda function, code: code.co_filename in (__file__, TEXT))
    choose_hook(request.param).reset()


def run(program: Program) -> tuple[Any, str]:
    """What a program gives, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        return program(), out.getvalue()


def check(everything: CaptureAll, program: Program) -> None:
    """The same captured as plain, twice, with the class bodies in it captured."""
    expected = run(program)
    everything.take(program)  # type: ignore[arg-type]
    for _ in range(2):
        with everything.active():
            found = run(program)
        assert found == expected
    bodies = [code for code in program.__code__.co_consts if hasattr(code, "co_flags")]
    bodies = [code for code in bodies if not code.co_flags & 1]
    kinds = {code.co_name: everything.frames_of(code).kind for code in bodies}
    assert "plain" not in kinds.values(), kinds
    assert not everything.internal_errors


TEXT = "<a module>"


def names_of(cls: type) -> list[str]:
    """The names in a class, in order, without those that its metaclass added."""
    return [name for name in vars(cls) if name not in ("__dict__", "__weakref__", "__doc__")]


def classes() -> Any:
    y = 3

    class Base:
        z: int = y
        w = z + y

        def own(self) -> Any:
            return __class__, super().__repr__ is not None, y  # type: ignore[name-defined]

        @property
        def twice(self) -> int:
            return self.w * 2

        def defaulted(self, q: int = w) -> int:
            return q

        squares = [i * i for i in range(w)]
        del w
        w = 5
        for k in squares[:2]:
            try:
                1 / k
            except ZeroDivisionError as error:
                text = str(error)

        class Inner:
            a = y

            def f(self) -> type:
                return __class__  # type: ignore[name-defined]

    found: Any = Base()
    return (
        names_of(Base), Base.__annotations__, found.own()[0] is Base, found.own()[1:], found.twice,
        found.defaulted(), Base.squares, Base.text, Base.Inner.a, Base.Inner().f() is Base.Inner,
        Base.__qualname__, Base.own.__qualname__, Base.own.__module__ == __name__,
    )  # fmt: skip


def breaks() -> Any:
    class Body:
        a = 1
        print("the names so far:", sorted(locals()))
        b = a + 1

        def f(self) -> Any:
            return __class__  # type: ignore[name-defined]

        print("and now:", sorted(vars()), __qualname__)  # noqa: F821
        locals()["c"] = 5
        exec("d = c + a")
        e = d + b  # type: ignore[name-defined]  # noqa: F821
        here = sorted(dir())

    return names_of(Body), Body.e, Body.here, Body().f() is Body


class Log(dict[str, Any]):
    """A namespace that tells what is done to it."""

    def __getitem__(self, name: str) -> Any:
        print("get", name)
        if name == "magic":
            return 42
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        print("set", name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        print("delete", name)
        super().__delitem__(name)


class Logging(type):
    """A metaclass whose classes have a namespace of their own kind."""

    @classmethod
    def __prepare__(cls, name: str, bases: Any) -> Any:  # type: ignore[override]
        return Log()


def prepared() -> Any:
    class Body(metaclass=Logging):
        a = magic  # type: ignore[name-defined]  # noqa: F821
        b = len("four")
        del a
        try:
            del a
        except NameError as error:
            text = str(error)

        def f(self) -> Any:
            return __class__  # type: ignore[name-defined]

    return names_of(Body), Body.b, Body.text, Body().f() is Body


def enums() -> Any:
    class Color(enum.Enum):
        RED = 1
        GREEN = enum.auto()

        def lower(self) -> str:
            return self.name.lower()

    class Flags(enum.IntFlag):
        A = enum.auto()
        B = enum.auto()
        AB = A | B

    return (
        [(each.name, each.value, each.lower()) for each in Color],
        str(Flags.AB),
        str(list(Flags)),
    )


def raises() -> Any:
    lines = []

    def fails() -> None:
        class Body:
            a = 1
            b = a + missing  # type: ignore[name-defined]  # noqa: F821

    try:
        fails()
    except NameError as error:
        entry: Any = error.__traceback__
        while entry is not None:
            lines.append((entry.tb_frame.f_code.co_name, entry.tb_lineno))
            entry = entry.tb_next
        return str(error), lines[-1]


def orders_bases() -> Any:
    class Meta(type):
        def mro(cls) -> list[type]:
            print(vars(cls)["size"])
            return super().mro()

    class Thing(metaclass=Meta):
        size = 3

    return Thing.size, len(Thing.__mro__)


@pytest.mark.parametrize("program", [classes, breaks, prepared, enums, raises, orders_bases])
def test_class_bodies(everything: CaptureAll, program: Program) -> None:
    check(everything, program)


MODULE = """
import math
total = 0
def add(n):
    global total
    total += n
    return total
for i in range(3):
    add(i)
assert globals() is locals()
class Thing:
    size = add(10)
    def f(self): return __class__, total
print(total, Thing().f()[0] is Thing, sorted(globals())[-5:])
del i
rest = [add(k) for k in (1, 2)]
value = math.floor(2.5) + eval("rest[0] + total")
"""


SEPARATE = """
total = 1
class Thing:
    size = len("four")
    def f(self): return __class__
values = [total, Thing.size] if "total" in locals() and "total" not in globals() else []
del total
rest = Thing.size, eval("values"), sorted(locals())
"""


@pytest.mark.parametrize("text", [MODULE, SEPARATE])
def test_modules(everything: CaptureAll, text: str) -> None:
    """One namespace for all, and one beside that of the globals."""
    code = compile(text, TEXT, "exec")

    def once() -> Any:
        spaces: list[dict[str, Any]] = [{"__name__": "made"} for _ in range(1 + (text is SEPARATE))]
        exec(code, *spaces)
        names = [[name for name in space if name != "__builtins__"] for space in spaces]
        return names, spaces[-1]["rest"], spaces[-1].get("value")

    expected = run(once)
    with everything.active():
        assert run(once) == expected
    assert not everything.internal_errors
    assert everything.frames_of(code).kind == "pieces"


def test_exec_waits_for_a_break_in_its_arguments(everything: CaptureAll) -> None:
    code = compile(MODULE, TEXT, "exec")

    def once() -> Any:
        space: dict[str, Any] = {"__name__": "made"}
        made = [exec(code, print("first") or space), exec(code, space)]
        return made, exec, len(space)

    check(everything, once)
    assert everything.frames_of(code).kind == "pieces"


READS_VARIABLES = """
print("in pieces")
rest = [{reader}("x") if {reader} is eval else {reader}()["x"] for x in (1, 2)]
"""


@pytest.mark.parametrize("reader", ["locals", "eval"])
def test_variables_of_a_comprehension_show_in_a_body(everything: CaptureAll, reader: str) -> None:
    code = compile(READS_VARIABLES.format(reader=reader), TEXT, "exec")

    def once() -> Any:
        space: dict[str, Any] = {"__name__": "made"}
        exec(code, space)
        return space["rest"]

    expected = run(once)
    with everything.active():
        assert run(once) == expected
    assert not everything.internal_errors

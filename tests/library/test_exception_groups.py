"""Exception groups, and the clauses of ``except*``."""

import collections
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(3.0)


def group(*parts: BaseException, text: str = "m") -> Any:
    return BaseExceptionGroup(text, list(parts))


def several(which: Any) -> Any:
    log: list[Any] = []
    try:
        try:
            raise which
        except* ValueError as values:
            log.append(("values", values, sys.exception() is values))
        except* (TypeError, KeyError) as others:
            log.append(("others", others.exceptions, others.message))
        except* OSError:
            log.append("os")
            raise
        else:
            log.append("else")
        finally:
            log.append(("finally", sys.exception()))
    except BaseException as left:
        log.append(left)
    return log


RAISED: tuple[Callable[[], BaseException], ...] = (
    lambda: group(ValueError(1)),
    lambda: group(ValueError(1), TypeError(2)),
    lambda: group(ValueError(1), group(TypeError(2), OSError(3), text="inner"), KeyError(4)),
    lambda: group(OSError(1), IndexError(2)),
    lambda: group(KeyboardInterrupt(), OSError(2), ValueError(3)),
    lambda: ValueError(5),
    lambda: OSError(6),
    lambda: IndexError(7),
)


@program(*((X, make) for make in RAISED))
def test_clauses_take_their_part(x: Tensor, make: Callable[[], BaseException]) -> Any:
    return x * 2, several(make())


def raises_in_clauses(make: Callable[[], BaseException], way: int) -> None:
    try:
        raise make() from LookupError("cause")
    except* ValueError as e:
        if way == 0:
            raise
        if way == 1:
            raise e
        if way == 2:
            raise KeyError("new") from e
        if way == 3:
            raise e.exceptions[0]
        e.add_note("noted")
    except* TypeError as e:
        raise RuntimeError(e.message) from None


@program(*((X, make, way) for make in RAISED for way in range(5)))
def test_what_clauses_raise_is_put_together(
    x: Tensor, make: Callable[[], BaseException], way: int
) -> Any:
    try:
        raises_in_clauses(make, way)
    except BaseException as left:
        return x + 1, left
    return x


class Numbered(ExceptionGroup):
    """Makes its like itself; its ``__new__`` takes more than the built-in one."""

    def __new__(cls, message: str, parts: Any, number: int = 0) -> "Numbered":
        made = super().__new__(cls, message, parts)
        made.number = number  # type: ignore[attr-defined]
        return made

    def derive(self, parts: Any) -> Any:
        return Numbered(self.message, parts, self.number + 1)  # type: ignore[attr-defined]


class Hidden(ExceptionGroup):
    """Shows other fields than those that it was made of."""

    message = "shown"  # type: ignore[assignment]
    exceptions = ()  # type: ignore[assignment]


class Refused(ExceptionGroup):
    def derive(self, parts: Any) -> Any:
        return len(parts)


def parts_of(made: Any, log: list[Any]) -> Any:
    made.add_note("a note")

    def small(exc: BaseException) -> bool:
        log.append(exc)
        return bool(exc.args) and exc.args[0] == 1

    half = made.split(ValueError)
    rest = made.split((TypeError, OSError))
    picked = made.split(small), made.subgroup(small), made.subgroup(Exception) is made
    if half[0] is not None:
        half[0].__notes__.append("its own")
    return half, rest, picked, made.exceptions is made.exceptions


MADE: tuple[Callable[[], Any], ...] = (
    lambda: group(ValueError(1), TypeError(2)),
    lambda: group(ValueError(3), KeyboardInterrupt(1)),
)
HIDING: tuple[Callable[[], Any], ...] = (
    lambda: Numbered("n", (ValueError(1), Numbered("in", [TypeError(2), ValueError(1)], 7)), 3),
    lambda: Hidden("h", [ValueError(1), TypeError(2)]),
)


def split(make: Callable[[], Any]) -> Any:
    log: list[Any] = []
    made = make()
    return made, parts_of(made, log), log, str(made), repr(made), made.args


@program(*((X, make) for make in MADE))
def test_groups_are_split(x: Tensor, make: Callable[[], Any]) -> Any:
    return x + 1, split(make)


@program(*((X, make) for make in HIDING), breaks=None)  # since 3.14
def test_groups_that_hide_what_they_were_made_of(x: Tensor, make: Callable[[], Any]) -> Any:
    return x + 1, split(make)


def first_list(parts: list[Any]) -> Any:
    made = group(*parts)
    kept = ExceptionGroup("k", parts)
    parts.append(OSError(4))
    return made, kept, kept.exceptions


@program((X,))
def test_a_group_keeps_what_it_was_made_of(x: Tensor) -> Any:
    return x + 1, first_list([ValueError(1)])


MISUSED: tuple[Callable[[], Any], ...] = (
    lambda: ExceptionGroup("m", []),
    lambda: ExceptionGroup("m"),  # type: ignore[call-arg]
    lambda: ExceptionGroup(1, [ValueError()]),  # type: ignore[arg-type]
    lambda: ExceptionGroup("m", [ValueError(), 3]),  # type: ignore[list-item]
    lambda: ExceptionGroup("m", [KeyboardInterrupt()]),  # type: ignore[list-item]
    lambda: Numbered("m", [KeyboardInterrupt()]),
    lambda: ExceptionGroup("m", {ValueError()}),  # type: ignore[arg-type]
    lambda: group(ValueError()).split(3),
    lambda: group(ValueError()).subgroup(int),
    lambda: group(ValueError()).split((ValueError, 3)),
    lambda: Refused("m", [ValueError(), TypeError()]).split(TypeError),
    lambda: setattr(group(ValueError()), "message", "x"),
    lambda: clause_for(int),
    lambda: clause_for((ValueError, "a")),
    lambda: clause_for(ExceptionGroup),
)


def clause_for(kinds: Any) -> Any:
    try:
        raise group(ValueError(1))
    except* kinds:
        pass


@program(*((X, make) for make in MISUSED), breaks=None)
def test_what_is_refused(x: Tensor, make: Callable[[], Any]) -> Any:
    try:
        return x + 1, make()
    except Exception as error:
        return x * 2, error


def breaks_in_clauses(x: Tensor) -> Any:
    log: list[Any] = []
    try:
        try:
            raise group(ValueError(1), TypeError(2), OSError(3))
        except* ValueError as e:
            x = x + 1
            torch._dynamo.graph_break()
            log.append((e, sys.exception() is e))
            x = x * 2
        except* TypeError:
            torch._dynamo.graph_break()
            raise KeyError("k")
        torch._dynamo.graph_break()
    except ExceptionGroup as left:
        torch._dynamo.graph_break()
        log.append(left)
    return x, log


@program((X,), breaks=None)
def test_breaks_in_the_midst_of_clauses(x: Tensor) -> Any:
    return breaks_in_clauses(x * 3)


def from_outside(x: Tensor, given: Any) -> Any:
    try:
        raise given
    except* ValueError as e:
        found = e.exceptions, e.message
    return x + 1, found, given.split(TypeError)


@program((X, group(ValueError(1), TypeError(2))), breaks=None)
def test_groups_from_outside(x: Tensor, given: Any) -> Any:
    try:
        return from_outside(x, given)
    except BaseExceptionGroup as left:
        return x * 2, left


def trail(exc: BaseException, deep: int = 5) -> list[Any]:
    """Where an exception and its parts came along."""
    lines, at = [], exc.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        # Where an exception came through no line of a compiled function, its first one is shown.
        ours = "dynacap" in code.co_filename and "tests" not in code.co_filename
        if not ours and at.tb_lineno != code.co_firstlineno:
            lines.append((code.co_name, at.tb_lineno))
        at = at.tb_next
    if not deep:
        return [lines]
    linked = [exc.__cause__, exc.__context__, *getattr(exc, "exceptions", ())]
    return [lines, *(trail(each, deep - 1) for each in linked if each is not None)]


@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize("make", RAISED)
def test_tracebacks_of_what_clauses_raise(make: Callable[[], BaseException], way: int) -> None:
    def raised(function: Any) -> Any:
        for _ in range(2):
            try:
                function(make, way)
            except BaseException as error:
                found = trail(error)
                found[0] = found[0][1:]  # that of this function
            else:
                found = None
        return found

    assert raised(dynacap.compile(raises_in_clauses, backend="eager")) == raised(raises_in_clauses)


class Slotted:
    __slots__ = ("a", "b")


@program((X,), breaks=None)
def test_fields_are_read_through_their_descriptors(x: Tensor) -> Any:
    made = Slotted()
    made.a = x + 1  # type: ignore[attr-defined]
    descriptor: Any = Slotted.a  # type: ignore[attr-defined]
    read, other = descriptor.__get__(made), descriptor.__get__(made, Slotted)
    found: list[Any] = [descriptor.__get__(None, Slotted) is descriptor, read is other]
    for wrong in (lambda: Slotted.b.__get__(made), lambda: descriptor.__get__(3)):  # type: ignore[attr-defined]
        try:
            found.append(wrong())
        except (AttributeError, TypeError) as error:
            found.append((type(error), str(error)))
    return read * 2, found


@program((X,), breaks=None)
def test_text_of_groups_whose_arguments_are_changed(x: Tensor) -> Any:
    texts = []
    for made in ([ValueError(1)], (ValueError(1), KeyError(2)), collections.deque([OSError(3)])):
        kept: Any = made
        one = BaseExceptionGroup("one", kept)
        texts.append(repr(one))
        if not isinstance(kept, tuple):
            kept.clear()
        texts += [repr(one), len(one.args[1])]
    return texts, x + 1

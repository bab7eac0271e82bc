"""How built-in exceptions are made, what they keep, and their tracebacks where they are kept."""

import contextlib
import io
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)
ENGINE: Any = dynacap
FIELDS = (
    "errno strerror filename name path obj msg lineno start object code value exceptions".split()
)
MADE: tuple[Callable[[], Any], ...] = (
    lambda: OSError(2, "x"),
    lambda: OSError("x"),
    lambda: OSError("foo", "bar", "baz"),
    lambda: AttributeError("a", name="n", obj=3),
    lambda: ImportError("m", name="q", path="p"),
    lambda: SyntaxError("x", ("f", 1, 2, "text")),
    lambda: UnicodeDecodeError("ascii", b"x", 0, 1, "r"),
    lambda: b"\xff".decode(),
    lambda: NameError("a", name="b"),
    lambda: SystemExit(3),
    lambda: StopIteration(4),
    lambda: ExceptionGroup("g", [ValueError(1)]),
    lambda: BaseException(a=1),  # type: ignore[call-arg]
    lambda: AttributeError(zz=1),  # type: ignore[call-arg]
    lambda: ValueError(name=2),  # type: ignore[call-arg]
    lambda: setattr(ValueError(), "__cause__", 1),
    lambda: setattr(ValueError(), "__context__", 1),
    lambda: setattr(ValueError(), "__traceback__", 1),
    lambda: setattr(ValueError(), "args", 1),
    lambda: ValueError().add_note(3),
)


@program(*((X, make) for make in MADE), breaks=None)
def test_what_a_built_in_exception_keeps(x: Tensor, make: Callable[[], Any]) -> Any:
    try:
        made = make()
    except Exception as error:
        made = error
    fields = [getattr(made, name, "-") for name in FIELDS]
    return x + 1, type(made), getattr(made, "args", ()), str(made), repr(fields)


class Coded(Exception):
    """Takes a named argument, which its base does not see."""

    def __init__(self, *, code: int) -> None:
        self.code = code
        super().__init__("hello")


@program((X,))
def test_an_exception_with_an_init_of_its_own(x: Tensor) -> Any:
    made = Coded(code=4)
    return x + 1, made.code, made.args, str(made)


def entries(tb: types.TracebackType | None) -> list[tuple[str, int]]:
    """Function and line of each entry, as a reporter would show them."""
    return [(frame.name, frame.lineno or 0) for frame in traceback.extract_tb(tb)]


def inner(error: BaseException) -> None:
    raise error


class Keeps:
    """A context manager that keeps the traceback."""

    def __enter__(self) -> "Keeps":
        return self

    def __exit__(self, kind: Any, value: Any, tb: Any) -> bool:
        self.tb = tb
        return True


@program((X,), breaks=None)
def test_tracebacks_that_are_kept(x: Tensor) -> Any:
    out: list[Any] = []
    try:
        inner(KeyError(1))
    except KeyError as error:
        tb: Any = sys.exc_info()[2]
        out.append((tb is error.__traceback__, entries(tb)))
    made = ValueError("z")
    try:
        inner(made)
    except ValueError as error:
        tb = error.__traceback__
        print("a break")
    out.append((tb is made.__traceback__, tb.tb_next.tb_lineno, made.__traceback__ == tb))
    keeps = Keeps()
    with keeps:
        inner(KeyError(3))
    out.append(entries(keeps.tb))
    return x + 1, out


@program((X, ValueError("made outside")), breaks=None)
def test_the_traceback_of_an_exception_from_outside(x: Tensor, made: Any) -> Any:
    try:
        raise made
    except ValueError as error:
        tb: Any = error.__traceback__
        same = made.__traceback__ is tb
    again = made.with_traceback(tb)
    return x + 1, same, again.__traceback__ == tb, tb.tb_lineno


@contextlib.contextmanager
def notes(log: list[str]) -> Iterator[None]:
    """A manager that the exception passes, and which puts its traceback back."""
    try:
        yield
    finally:
        log.append("done")


@program((X, []), breaks=None)
def test_an_exception_that_passed_a_generator(x: Tensor, log: list[str]) -> Any:
    found: Any = None
    try:
        with notes(log):
            inner(KeyError(3))
    except KeyError as error:
        found = error
    print("a break")
    return x + 1, repr(found), entries(found.__traceback__)


@program((X,))
def test_init_sets_all_fields_again(x: Tensor) -> Any:
    made = ImportError("m", name="q", path="p")
    before = made.args, made.msg, made.name, made.path
    made.__init__()  # type: ignore[misc]
    return x + 1, before, made.args, made.msg, made.name, made.path


@program((X,), breaks=None)
def test_notes_that_are_no_list(x: Tensor) -> Any:
    made = ValueError("m")
    made.__notes__ = 1  # type: ignore[assignment]
    try:
        made.add_note("n")
    except TypeError as error:
        return x + 1, str(error)


@program((X,), breaks=None)
def test_contexts_in_a_circle(x: Tensor) -> Any:
    one, two, three = TypeError(1), ValueError(2), KeyError(3)
    one.__context__, two.__context__ = two, one
    try:
        try:
            raise one
        finally:
            raise three
    except Exception as error:
        first: Any = error.__context__
        return x + 1, repr(error), repr(first), repr(first.__context__)


class Refuses:
    """Has no attributes but one, and does not say so well."""

    blech = 1

    def __getattr__(self, name: str) -> Any:
        raise AttributeError()


def printed(error: BaseException) -> str:
    """The last line of what is printed of an exception, which may suggest a name."""
    with contextlib.redirect_stderr(io.StringIO()) as err:
        sys.__excepthook__(type(error), error, error.__traceback__)
    return err.getvalue().splitlines()[-1]


@program((X, Refuses()), breaks=None)
def test_names_that_are_suggested(x: Tensor, refuses: Any) -> Any:
    blech, lines = x + 1, []
    try:
        print(blach)  # type: ignore[name-defined]  # noqa: F821
    except NameError as error:
        lines.append(printed(error))
    try:
        print(refuses.bluch)
    except AttributeError as error:
        lines += [printed(error), error.name, str(error.obj is refuses)]
    return blech, lines


def both() -> tuple[Any, Any]:
    return sys.exception(), sys.exc_info()[1]


@program((X,), breaks=None)
def test_the_exception_that_the_caller_handles(x: Tensor) -> Any:
    quiet = both()
    try:
        raise KeyError("handled")
    except KeyError as error:
        ENGINE.graph_break()
        seen = [found is error for found in both()]
    return x + 1, quiet, seen, both()


def set_and_deleted(exc: BaseException, name: str, *values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        try:
            setattr(exc, name, value)
        except TypeError as error:
            found.append(str(error))
        found.append(getattr(exc, name))
    try:
        delattr(exc, name)
    except TypeError as error:
        found.append(str(error))
    return [*found, getattr(exc, name)]


@program((X,), breaks=None)
def test_fields_that_are_set_and_deleted(x: Tensor) -> Any:
    return (
        set_and_deleted(SyntaxError("s"), "msg", "text", None),
        set_and_deleted(SystemExit(1), "code", "text", None),
        set_and_deleted(StopIteration(), "value", 5),
        set_and_deleted(OSError(2, "m"), "errno", 3),
        set_and_deleted(KeyError(), "__suppress_context__", 1, None, True),
        x + 1,
    )


@program((X,), breaks=None)
def test_what_the_library_raised_because_of_another(x: Tensor) -> Any:
    try:
        try:
            raise OSError("outer")
        except OSError:
            x = x + 1
            "a..b".encode("idna")
    except UnicodeError as error:
        first = error.__context__
        return x, repr(error.__cause__), repr(first), repr(first and first.__context__)
    return None


class Longer(Exception):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args, "more")


@program((X, ValueError([X])), (X, KeyError()))
def test_arguments_are_one_tuple(x: Tensor, given: Exception) -> Any:
    made = Longer([x])
    before = made.args
    same = made.args is before, given.args is given.args
    kept = (x, 2)
    other = ValueError(1)
    other.args = kept
    listed = ValueError(1)
    listed.args = [x, 2]  # type: ignore[assignment]
    return x + 1, same, made, made.args, before, given.args, other, kept, listed, listed.args

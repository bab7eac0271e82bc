"""Generators that die while put aside, weak references, finalizers: as CPython has them."""

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from dynacap.testing import check_same, program

X = torch.arange(6.0).reshape(2, 3)


class Box:
    """A plain object."""

    def __init__(self, value: Any = 0) -> None:
        self.value = value


class Owner:
    """Says when it dies."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.name = log, name

    def __del__(self) -> None:
        self.log.append(self.name)


def careful(log: list[Any], count: int = 2) -> Iterator[int]:
    try:
        yield from range(count)
    finally:
        log.append("closed")


def careless(log: list[Any]) -> Iterator[int]:
    yield from careful(log)


@contextlib.contextmanager
def noted(log: list[Any]) -> Iterator[None]:
    log.append("in")
    try:
        yield
    finally:
        log.append("out")


def tell() -> None:
    print("broken", end="")


@program((X, []))
def test_loop_left_early(x: Tensor, log: list[Any]) -> Any:
    for value in careful(log):
        x = x + value
        break
    log.append("after")
    return x


@program((X, []))
def test_variable_rebound_and_deleted(x: Tensor, log: list[Any]) -> Any:
    one: Any = careful(log)
    next(one)
    one = None
    log.append("rebound")
    two = careful(log)
    next(two)
    del two
    log.append("deleted")
    return x + 1, one


@program((X, []))
def test_left_in_a_frame_that_returns(x: Tensor, log: list[Any]) -> Any:
    def first() -> int:
        values = careful(log)
        return next(values)

    got = first()
    log.append("returned")
    return x + got


@program((X, []))
def test_temporaries(x: Tensor, log: list[Any]) -> Any:
    next(careful(log))
    log.append("next")
    first, *_ = careful(log)
    log.append("unpacked")
    some = any(value == 0 for value in careful(log))
    log.append("any")
    pairs = list(zip([5], careful(log), strict=False))
    log.append("zip")
    return x + first, some, pairs


@program((X, []))
def test_held_by_containers(x: Tensor, log: list[Any]) -> Any:
    held: Any = [careful(log)]
    next(held[0])
    log.append("list")
    held.pop()
    log.append("popped")
    held = {"one": Box(careful(log))}
    next(held["one"].value)
    held = None
    log.append("dropped")
    return x + 1


@program((X, []))
def test_delegates_and_expressions(x: Tensor, log: list[Any]) -> Any:
    one = careless(log)
    next(one)
    del one
    log.append("delegate")
    two = (value + 1 for value in careful(log))
    x = x + next(two)
    del two
    log.append("expression")
    return x, list(careless(log))


@program((X, []))
def test_that_goes_on_stays_open(x: Tensor, log: list[Any]) -> Any:
    values = careful(log, 3)
    total = next(values)
    with noted(log):
        total += next(values)
        same = values
        values = iter([9])
        log.append("still open")
    return x + total, list(same), list(values)


@program((X, []))
def test_kept_by_the_traceback(x: Tensor, log: list[Any]) -> Any:
    def fails() -> None:
        values = careful(log)
        next(values)
        raise KeyError("k")

    try:
        fails()
    except KeyError:
        log.append("handled")
    log.append("forgotten")
    return x + 1


@program((X, []))
def test_nested_managers(x: Tensor, log: list[Any]) -> Any:
    def rows() -> Iterator[int]:
        with noted(log):
            yield 1
            yield 2

    for outer in rows():
        for inner in rows():
            log.append((outer, inner))
            if inner == 1:
                break
        if outer == 2:
            break
    log.append("end")
    return x + 1


@program((X, []), breaks=None)
def test_closing_breaks_the_graph(x: Tensor, log: list[Any]) -> Any:
    def chatty() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            tell()
            log.append("closed")

    x = x + next(chatty())
    log.append("after")
    return x


@program((X,), breaks=None)
def test_local_keeps_the_target_of_a_weak_reference(x: Tensor) -> Any:
    box = Box(x + 1)
    pointer = weakref.ref(box)
    y = x + 1
    tell()
    return y, pointer() is None


@program((X,), breaks=None)
def test_a_base_knows_a_class_that_only_a_local_holds(x: Tensor) -> Any:
    base = type("Base", (), {})
    derived = type("Derived", (base,), {})  # noqa: F841
    gc.collect()
    return x + 1, len(type.__subclasses__(base))


@program((X,), breaks=None)
def test_target_of_a_weak_reference_dies(x: Tensor) -> Any:
    def inner() -> tuple[Callable[[], Any], bool]:
        box = Box(x + 1)
        pointer = weakref.ref(box)
        tell()
        return pointer, pointer() is None

    pointer, dead = inner()
    tell()
    return x + 1, dead, pointer() is None


@program((X, []), breaks=None)
def test_finalizer_of_a_local(x: Tensor, log: list[Any]) -> Any:
    one = Owner(log, "one")
    log.append("made")
    one = Owner(log, "two")
    log.append("rebound")
    tell()
    del one
    log.append("deleted")
    return x + 1


@program((X, []))
def test_owners_die_before_what_they_hold(x: Tensor, log: list[Any]) -> Any:
    def source() -> Iterator[int]:
        try:
            yield from range(5)
        finally:
            log.append("source")

    def doubled(values: Iterator[int]) -> Iterator[int]:
        try:
            for value in values:
                yield value * 2
        finally:
            log.append("doubled")

    for _ in doubled(source()):
        break
    log.append("loop")
    first = next(value for value in doubled(source()))
    log.append("expression")
    return x + first


@program((X, []), breaks=None)
def test_finalizers_between_breaks(x: Tensor, log: list[Any]) -> Any:
    """What a frame that goes on after a break lets go of dies then."""

    def inner(box: Any) -> Tensor:
        tell()
        del box
        log.append("inner")
        tell()
        return x * 2

    first = Owner(log, "first")
    x = x + 1
    del first
    log.append("deleted")
    for _ in [Owner(log, "loop")]:
        tell()
        break
    log.append("left")
    x = inner(Owner(log, "argument"))
    try:
        box = Owner(log, "handled")
        raise ValueError
    except ValueError:
        tell()
        box = None
        log.append("handled")
    log.append("end")
    return x, box


@program((X, []), breaks=None)
def test_what_a_generator_holds_dies_at_its_end(x: Tensor, log: list[Any]) -> Any:
    def each(owner: Owner) -> Any:
        yield owner.name

    closed, ended = each(Owner(log, "closed")), each(Owner(log, "ended"))
    seen = [next(closed)]
    closed.close()
    seen += [*log, *ended]
    return seen, list(log), x + 1


@program((X, []), breaks=None)
def test_what_a_generator_that_never_ran_holds(x: Tensor, log: list[Any]) -> Any:
    def each(owner: Owner) -> Any:
        yield owner.name

    made = each(Owner(log, "closed"))
    made.close()
    return list(log), x + 1


@program((X, {}), breaks=None)
def test_a_function_that_a_local_holds_behind_a_weak_reference(x: Tensor, kept: Any) -> Any:
    def remove(reference: Any) -> None:
        del kept[reference]

    def put() -> None:
        function = lambda: ()  # noqa: E731
        kept[weakref.ref(function, remove)] = None
        raise KeyError

    try:
        put()
    except KeyError:
        pass
    return len(kept), x + 1


@program((X,), breaks=None)
def test_a_list_that_only_a_local_holds_behind_weak_values(x: Tensor) -> Any:
    made = [Box(index) for index in range(3)]
    weak: Any = weakref.WeakValueDictionary({box.value: box for box in made})
    others = list(made)
    for reference in weak.valuerefs():
        others.remove(reference())
        tell()
    return len(weak), x + 1


class Told:
    """Says when it dies."""

    def __init__(self, log: list[Any], name: Any) -> None:
        self.log, self.name = log, name

    def __del__(self) -> None:
        self.log.append(self.name)


def in_a_list(x: Tensor, log: list[Any]) -> Tensor:
    first, _others = Told(log, 1), [Told(log, 2), Told(log, 3)]
    x = x + 1
    first = Told(log, 4)
    log.append("replaced")
    return x * len(first.log)


def in_a_tuple(x: Tensor, log: list[Any]) -> Tensor:
    _kept = (Told(log, 1), x)
    x = x + 1
    Told(log, 2)
    log.append("behind")
    return x * 2


def popped(x: Tensor, log: list[Any]) -> Tensor:
    held = [Told(log, 1), Told(log, 2)]
    held.pop(0)
    log.append("popped")
    return x + 1


@pytest.mark.parametrize("function", [in_a_list, in_a_tuple, popped])
def test_what_a_container_holds_dies_when_its_local_does(function: Any) -> None:
    check_same(function, *[(X, []) for _ in range(3)])

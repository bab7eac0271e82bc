"""``threading.local`` and other objects that keep their attributes in their own way."""

import decimal
import threading
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import Scenario, call, check_same, check_scenario, program

X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("way", ["attribute", "default", "hasattr", "dict", "caught", "deleted"])
def test_attributes_are_those_of_the_thread(way: str) -> None:
    def build() -> Scenario:
        local = threading.local()

        def use(x: Tensor, n: int) -> Any:
            if way == "attribute":
                local.count = local.count + n
                return x + local.count
            if way == "default":
                return x + getattr(local, "count", 100)
            if way == "hasattr":
                return x + 1, hasattr(local, "count"), hasattr(local, "other")
            if way == "dict":
                vars(local)["other"] = n
                return x + local.other, local.__dict__, sorted(vars(local))
            if way == "caught":
                try:
                    return x + local.other
                except AttributeError as error:
                    return x, str(error)
            del local.count
            return x + 1, hasattr(local, "count")

        def before(i: int) -> None:
            local.count = i

        calls = [call(X.clone(), n) for n in (1, 1, 2, 2)]
        return Scenario(use, calls, before, lambda i, r: vars(local))

    check_scenario(build, breaks=0)


def test_what_is_captured_in_one_thread_holds_in_no_other() -> None:
    local = threading.local()
    local.by = 2.0

    @dynacap.compile
    def use(x: Tensor) -> Tensor:
        local.seen = True
        return x * getattr(local, "by", 10.0)

    found: list[Any] = []

    def elsewhere() -> None:
        found.append(use(X))
        found.append(vars(local))
        local.by = 3.0
        found.append(use(X))

    assert torch.equal(use(X), X * 2)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert torch.equal(found[0], X * 10)
    assert found[1] == {"seen": True, "by": 3.0}
    assert torch.equal(found[2], X * 3)
    assert torch.equal(use(X), X * 2)


class Own(threading.local):
    """Is made anew in each thread that looks at it."""

    def __init__(self, n: int) -> None:
        self.n = n


@program((X,), breaks=None)
def test_a_subclass(x: Tensor) -> Any:
    own = Own(2)
    own.more = 1  # type: ignore[attr-defined]
    try:
        found = own.n + own.missing  # type: ignore[attr-defined]
    except AttributeError:
        found = getattr(own, "n", 0)
    return x + found, hasattr(own, "more")


@program((X,), breaks=None)
def test_one_that_is_made_inside(x: Tensor) -> Any:
    local = threading.local()
    local.n = 3
    lock = threading.Lock()
    with lock:
        x = x + local.n
    return x, lock.locked()


def test_contexts_of_decimal_numbers() -> None:
    def use(x: Tensor) -> Any:
        context = decimal.Context()
        context.prec = 5
        try:
            return x + context.prec, getattr(context, "rounding", None), hasattr(context, "prec")
        except AttributeError:
            return x

    check_same(use, (X,), (X,))

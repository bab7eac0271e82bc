"""Stances, skipped frames, breaks that are errors, and functions that go into the graph unseen."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.errors import RecompileError, Unsupported, UserError

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynacap.reset()
    yield
    dynacap.set_stance("default")
    dynacap.reset()


class Watched:
    """A compiled function that tells how often its graph ran."""

    def __init__(self) -> None:
        self.runs = self.compiles = 0

        def double(x: Tensor) -> Tensor:
            return x * 2

        self.call: Any = dynacap.compile(double, backend=self.backend)

    def backend(self, graph: Any, inputs: Any) -> Any:
        self.compiles += 1

        def forward(*args: Any) -> Any:
            self.runs += 1
            return graph.forward(*args)

        return forward


def test_force_eager_uses_nothing_compiled_and_gives_it_back() -> None:
    watched = Watched()
    watched.call(X)
    with dynacap.set_stance("force_eager"):
        assert watched.call(X).equal(X * 2)
        assert watched.call(X.double()).equal(X.double() * 2)
        assert (watched.runs, watched.compiles) == (1, 1)
    watched.call(X)
    assert (watched.runs, watched.compiles) == (2, 1)


def test_force_eager_holds_for_what_is_compiled_meanwhile() -> None:
    dynacap.set_stance("force_eager")
    watched = Watched()
    watched.call(X)
    assert watched.compiles == 0
    dynacap.set_stance("default")
    watched.call(X)
    assert watched.compiles == 1


def test_eager_on_recompile() -> None:
    watched = Watched()
    watched.call(X)
    with dynacap.set_stance("eager_on_recompile"):
        watched.call(X)
        assert watched.call(X.double()).dtype == torch.float64
    assert (watched.runs, watched.compiles) == (2, 1)


def test_fail_on_recompile() -> None:
    watched = Watched()
    watched.call(X)
    with dynacap.set_stance("fail_on_recompile"):
        watched.call(X)
        with pytest.raises(RecompileError, match="fail_on_recompile"):
            watched.call(X.double())
    watched.call(X.double())
    assert watched.compiles == 2


def test_eager_then_compile() -> None:
    watched = Watched()
    with dynacap.set_stance("eager_then_compile"):
        for runs in (0, 1, 2):
            assert watched.call(X).equal(X * 2)
            assert watched.runs == runs


def test_force_backend() -> None:
    watched, other = Watched(), Watched()
    with dynacap.set_stance("default", force_backend=other.backend):
        watched.call(X)
    assert (watched.compiles, other.compiles) == (0, 1)


def test_stances_nest_and_decorate() -> None:
    watched = Watched()

    @dynacap.set_stance("force_eager")
    def quiet() -> None:
        watched.call(X)

    watched.call(X)
    quiet()
    assert watched.runs == 1
    with dynacap.set_stance("force_eager"), dynacap.set_stance("default"):
        watched.call(X)
    watched.call(X)
    assert watched.runs == 3


def test_reset_while_entries_are_away() -> None:
    watched = Watched()
    watched.call(X)
    with dynacap.set_stance("force_eager"):
        dynacap.reset()
    watched.call(X)
    assert watched.compiles == 2


@pytest.mark.parametrize(
    "wrong",
    [{"stance": "lazy"}, {"skip_guard_eval_unsafe": True},
     {"stance": "force_eager", "force_backend": "eager"}],
)  # fmt: skip
def test_refused_stances(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        dynacap.set_stance(**wrong)


def test_stances_are_not_set_in_compiled_code() -> None:
    def function(x: Tensor) -> Tensor:
        dynacap.set_stance("force_eager")
        return x + 1

    with pytest.raises(UserError):
        dynacap.compile(function)(X)


# -- skip_frame ------------------------------------------------------------------------------------
def test_skip_frame() -> None:
    def function(x: Tensor) -> Tensor:
        dynacap.skip_frame("not worth it")
        return x + 1

    assert dynacap.compile(function)(X).equal(X + 1)
    assert dynacap.counters()["graphs"] == 0
    assert dynacap.counters()["reasons"] == {"skip-frame: not worth it": 1}
    with pytest.raises(Unsupported, match="skip-frame"):
        dynacap.compile(function, fullgraph=True)(X)


def test_skip_frame_of_a_callee() -> None:
    def callee(x: Tensor) -> Tensor:
        dynacap.skip_frame()
        return x + 1

    def function(x: Tensor) -> Tensor:
        return callee(x * 2) * 3

    assert dynacap.compile(function)(X).equal((X * 2 + 1) * 3)
    assert dynacap.counters()["graphs"] > 0


# -- error_on_graph_break --------------------------------------------------------------------------
def broken(x: Tensor) -> Tensor:
    y = x * 2
    dynacap.graph_break()
    return y + 1


def test_breaks_are_errors_around_a_call() -> None:
    with dynacap.error_on_graph_break(True), pytest.raises(Unsupported):
        dynacap.compile(broken)(X)
    with dynacap.error_on_graph_break(False):
        assert dynacap.compile(broken, fullgraph=True)(X).equal(X * 2 + 1)


def test_breaks_are_errors_in_part_of_a_function() -> None:
    def strict(x: Tensor) -> Tensor:
        dynacap.graph_break()
        with dynacap.error_on_graph_break(True):
            y = x * 2
            dynacap.graph_break()
        return y

    def loose(x: Tensor) -> Tensor:
        with dynacap.error_on_graph_break(False):
            y = x * 2
            dynacap.graph_break()
            y = y + 1
        return y * 3

    with pytest.raises(Unsupported):
        dynacap.compile(strict)(X)
    for _ in range(2):
        assert dynacap.compile(loose, fullgraph=True)(X).equal((X * 2 + 1) * 3)


# -- nonstrict_trace -------------------------------------------------------------------------------
def test_nonstrict_trace() -> None:
    seen = []

    @dynacap.nonstrict_trace
    def unseen(x: Tensor, extra: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        seen.append(type(x).__name__)
        return x * 2, extra["k"] + 1

    def function(x: Tensor) -> Tensor:
        a, b = unseen(x, {"k": x + 1})
        return a + b

    compiled = dynacap.compile(function, fullgraph=True)
    assert compiled(X).equal(X * 2 + X + 2)
    assert dynacap.counters()["graphs"] == 1
    assert "FakeTensor" in seen

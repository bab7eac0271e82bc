"""What `compile` and its friends take, refuse and give back."""

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap.fxlite import GraphModule

ENGINE: Any = dynacap
X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


class Counting:
    """The eager backend, noting what it was called with."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.extra: dict[str, Any] = {}

    def __call__(self, gm: GraphModule, example_inputs: Any, **extra: Any) -> Any:
        self.graphs.append(gm)
        self.extra = extra
        return gm


def double(x: Tensor, k: float = 2.0, *rest: Tensor, scale: int = 1) -> Tensor:
    """Double, or more."""
    return sum(rest, x * k * scale)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": 3}, ["model=3", "int", "nn.Module"]),
        ({"model": nn.Linear}, ["Linear", "instances"]),
        ({"model": double, "fullgraph": 1}, ["fullgraph=1", "True or False"]),
        ({"model": double, "dynamic": "yes"}, ["dynamic='yes'", "True or False"]),
        ({"model": double, "disable": None}, ["disable=None"]),
        ({"model": double, "backend": 4}, ["backend", "4"]),
        ({"model": double, "options": 4}, ["options", "4"]),
        ({"model": double, "mode": 4}, ["mode", "4"]),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        ENGINE.compile(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_unknown_backend() -> None:
    with pytest.raises(dynacap.DynacapError, match="no-such-backend"):
        dynacap.compile(double, backend="no-such-backend")
    with pytest.raises(dynacap.DynacapError, match="no-such-backend"):
        dynacap.compile(backend="no-such-backend")


def test_mode_and_options_reach_the_backend() -> None:
    backend = Counting()
    compiled = dynacap.compile(double, backend=backend, mode="fast", options={"level": 3})
    compiled(X)
    assert backend.extra == {"mode": "fast", "options": {"level": 3}}


def test_a_function_stays_what_it_was() -> None:
    compiled = dynacap.compile(double)
    assert compiled.__name__ == "double"
    assert compiled.__doc__ == double.__doc__
    assert compiled.__wrapped__ is double
    assert inspect.signature(compiled) == inspect.signature(double)
    for args, kwargs in (((X,), {}), ((X, 3.0, X), {}), ((X,), {"scale": 4, "k": 1.0})):
        assert torch.equal(compiled(*args, **kwargs), double(*args, **kwargs))  # type: ignore[arg-type]
    with pytest.raises(TypeError) as got:
        compiled()
    with pytest.raises(TypeError) as wanted:
        double()  # type: ignore[call-arg]
    assert str(got.value) == str(wanted.value)


def test_decorators_with_and_without_arguments() -> None:
    @dynacap.compile
    def plain(x: Tensor) -> Tensor:
        return x + 1

    backend = Counting()

    @dynacap.compile(backend=backend, fullgraph=True)
    def given(x: Tensor) -> Tensor:
        return x + 2

    assert torch.equal(plain(X), X + 1)
    assert torch.equal(given(X), X + 2)
    assert len(backend.graphs) == 1


class Scaler:
    """Methods of every kind, compiled where they are defined."""

    factor = 3

    def __init__(self, k: float) -> None:
        self.k = k

    @dynacap.compile
    def method(self, x: Tensor) -> Tensor:
        return x * self.k

    @dynacap.compile
    @staticmethod
    def static(x: Tensor) -> Tensor:
        return x + 1

    @dynacap.compile
    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        return x * cls.factor

    def plain(self, x: Tensor) -> Tensor:
        return x - self.k

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.k + 1


def test_methods() -> None:
    scaler = Scaler(2.0)
    assert torch.equal(scaler.method(X), X * 2)
    assert torch.equal(Scaler(5.0).method(X), X * 5)
    assert torch.equal(scaler.static(X), X + 1)
    assert torch.equal(Scaler.of_class(X), X * 3)
    bound = dynacap.compile(scaler.plain)
    assert bound.__self__ is scaler
    assert torch.equal(bound(X), X - 2)


@pytest.mark.parametrize(
    "target",
    [
        functools.partial(double, k=4.0),
        functools.partial(torch.add, X),
        Scaler(3.0),
        torch.sin,
        torch.nn.functional.relu,
        lambda x: x * 2,
    ],
)
def test_callables_of_other_kinds(target: Callable[[Tensor], Tensor]) -> None:
    backend = Counting()
    compiled = dynacap.compile(target, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(X), target(X))
    assert len(backend.graphs) == 1


def test_what_is_compiled_already_is_compiled_as_what_it_was() -> None:
    first, second = Counting(), Counting()
    once = dynacap.compile(double, backend=first)
    twice = dynacap.compile(once, backend=second)
    assert torch.equal(twice(X), double(X))
    assert (len(first.graphs), len(second.graphs)) == (0, 1)
    assert torch.equal(once(X), double(X))


def test_disabled_by_argument() -> None:
    backend = Counting()
    assert dynacap.compile(double, backend=backend, disable=True) is double


def inner(x: Tensor) -> Tensor:
    return x * 3


def test_disable_holds_for_all_below() -> None:
    @dynacap.disable
    def outside(x: Tensor) -> Tensor:
        assert not dynacap.is_compiling()
        return inner(x) + 1

    backend = Counting()

    def function(x: Tensor) -> Tensor:
        return outside(x + 1) * 2

    compiled = dynacap.compile(function, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(X), ((X + 1) * 3 + 1) * 2)
    assert [len(gm.graph.nodes) - 2 for gm in backend.graphs] == [1, 1]
    assert dynacap.counters()["reasons"].keys() == {
        "disabled: test_disable_holds_for_all_below.<locals>.outside is marked with disable"
    }


def test_disable_of_one_frame_only() -> None:
    @dynacap.disable(recursive=False, reason="slow")
    def outside(x: Tensor) -> Tensor:
        return inner(x) + 1

    backend = Counting()
    compiled = dynacap.compile(lambda x: outside(x + 1) * 2, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(X), ((X + 1) * 3 + 1) * 2)
    assert len(backend.graphs) == 3
    assert any(reason.endswith(": slow") for reason in dynacap.counters()["reasons"])


def test_disable_leaves_the_function_itself_alone() -> None:
    backend = Counting()
    disabled = dynacap.disable(inner)
    compiled = dynacap.compile(lambda x: inner(x) + 1, backend=backend)
    assert torch.equal(compiled(X), inner(X) + 1)
    assert dynacap.counters()["breaks"] == 0
    assert disabled.__name__ == "inner"
    assert dynacap.disable(disabled) is disabled
    assert dynacap.compile(disabled) is disabled


def test_disabled_module() -> None:
    backend = Counting()
    model = nn.Sequential(nn.Linear(3, 3), dynacap.disable(nn.ReLU()))
    compiled = dynacap.compile(model, backend=backend)
    assert torch.equal(compiled(X), model(X))
    assert "relu" not in {str(node.name) for gm in backend.graphs for node in gm.graph.nodes}


def test_marks_refuse_what_is_no_function() -> None:
    for mark in (dynacap.disable, dynacap.allow_in_graph, dynacap.forbid_in_graph):
        with pytest.raises(TypeError, match="fn=3"):
            mark(3)
    with pytest.raises(TypeError, match="takes no attributes"):
        dynacap.allow_in_graph(len)


@dynacap.allow_in_graph
def opaque(x: Tensor) -> Tensor:
    return x * 2 if x.requires_grad else x * 3


def test_allow_in_graph() -> None:
    backend = Counting()
    compiled = dynacap.compile(lambda x: opaque(x) + 1, backend=backend, fullgraph=True)
    assert torch.equal(compiled(X), X * 3 + 1)
    assert opaque in {node.target for node in backend.graphs[0].graph.nodes}


def test_graph_break_and_disallow() -> None:
    hidden = dynacap.disallow_in_graph(lambda x: inner(x))
    backend = Counting()

    def function(x: Tensor) -> Tensor:
        x = x + 1
        dynacap.graph_break("just so")
        return hidden(x) + 1

    compiled = dynacap.compile(function, backend=backend)
    assert torch.equal(compiled(X), (X + 1) * 3 + 1)
    assert any("just so" in reason for reason in dynacap.counters()["reasons"])


def test_forbid_in_graph() -> None:
    @dynacap.forbid_in_graph
    def never(x: Tensor) -> Tensor:
        return x

    with pytest.raises(dynacap.UserError, match="never"):
        dynacap.compile(lambda x: never(x + 1))(X)


def test_assume_constant_result() -> None:
    calls: list[int] = []

    @dynacap.assume_constant_result
    def setting(n: int) -> int:
        calls.append(n)
        return n * 10

    compiled = dynacap.compile(lambda x: x + setting(2), fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X + 20)
    assert calls == [2]


def test_is_compiling_only_in_compiled_code() -> None:
    def function(x: Tensor) -> Any:
        return x + 1, dynacap.is_compiling(), torch.compiler.is_compiling()

    assert function(X)[1:] == (False, False)
    assert dynacap.compile(function)(X)[1:] == (True, True)
    assert not dynacap.is_compiling()


def test_generators_and_coroutines_run_as_they_are() -> None:
    @dynacap.compile
    def several(x: Tensor) -> Iterator[Tensor]:
        yield x + 1
        yield x + 2

    @dynacap.compile
    async def later(x: Tensor) -> Tensor:
        return x + 3

    assert [t.tolist() for t in several(X)] == [(X + 1).tolist(), (X + 2).tolist()]
    with pytest.raises(StopIteration) as done:
        later(X).send(None)
    assert torch.equal(done.value.value, X + 3)


def test_marks_of_dimensions() -> None:
    x = X.reshape(1, 3)
    dynacap.mark_dynamic(x, 0, min=1)
    dynacap.maybe_mark_dynamic(x, [0, 1])
    dynacap.mark_static(x)

    def function(x: Tensor) -> Tensor:
        dynacap.mark_static(x, -1)
        return x * 2

    assert torch.equal(dynacap.compile(function, fullgraph=True)(x), x * 2)
    with pytest.raises(IndexError, match="index=2"):
        dynacap.mark_dynamic(x, 2)
    with pytest.raises(TypeError, match="t=3"):
        ENGINE.mark_dynamic(3, 0)


@pytest.mark.parametrize("first", ["dynacap.testing", "dynacap.api", "dynacap.guards"])
def test_any_module_can_be_imported_first(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {first}, dynacap; dynacap.compile"], check=False
    )
    assert done.returncode == 0

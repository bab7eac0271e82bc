"""Graphs that an earlier process compiled: found again by a description, without being traced."""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import dynacap
from dynacap.backends.native import backend
from dynacap.backends.native.aten import trace
from dynacap.backends.native.aten.inputs import shape_env

pytestmark = [pytest.mark.torch, pytest.mark.cc, pytest.mark.usefixtures("own_cache")]
Fn = Callable[..., Any]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs for which C code was written."""
    seen: list[Any] = []
    write = backend._written

    def noted(graph: torch.fx.GraphModule) -> Any:
        seen.append(graph)
        return write(graph)

    monkeypatch.setattr(backend, "_written", noted)
    return seen


def run(fn: Fn, *args: Any) -> Any:
    """What a new process would do: nothing is known but what lies on disk."""
    dynacap.reset()
    expected = fn(*args)
    result = dynacap.compile(fn, backend="native", dynamic=False)(*args)
    torch.testing.assert_close(result, expected)
    return result


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.add_(1).mul_(x)
    return y


def pooled(x: torch.Tensor) -> Any:
    return F.adaptive_avg_pool1d(x.t()[None], 1) + 1


def with_constants(x: torch.Tensor) -> Any:
    return x + torch.tensor([0.5, -1, 2, 3]), torch.tensor([[True]]) & (x > 0)


def without_c(x: torch.Tensor) -> Any:
    return x[torch.tril_indices(4, 4)[0]], torch.index_add(x, 0, torch.arange(4), x, alpha=2)


FUNCTIONS: dict[str, Fn] = {
    "pointwise": lambda x: (x + 1).exp() * torch.sigmoid(x),
    "several results": lambda x: (x.sin(), 3, None, x.shape[0], [x.sum(), 2.5]),
    "an input, and a view of it": lambda x: (x, x.t(), x + 1),
    "matrix products": lambda x: F.linear(x, x) @ x.softmax(-1),
    "library functions": lambda x: F.layer_norm(F.gelu(x), (4,)),
    "changes inside": in_place,
    "grad mode": lambda x: torch.no_grad()(lambda y: y * 2)(x),
    "a result that is turned": pooled,
    "slices": lambda x: x[1:, ::2] + x[0, 0],
    "constants": with_constants,
    "operators without C": without_c,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_process_writes_no_code(name: str, written: list[Any]) -> None:
    x = torch.randn(4, 4)
    run(FUNCTIONS[name], x)
    assert len(written) == 1
    run(FUNCTIONS[name], x)
    assert len(written) == 1
    assert dynacap.cache_info().hits == 1


def test_vmap_turns_no_gradient_on(written: list[Any]) -> None:
    x = torch.randn(4, 4, requires_grad=True)
    with torch.no_grad():
        for _ in range(2):
            run(torch.vmap(torch.exp), x)
    assert len(written) == 1


def test_changes_of_arguments_are_made_again(written: list[Any]) -> None:
    for _ in range(2):
        x = torch.ones(3)
        dynacap.reset()
        y = dynacap.compile(lambda x: x.add_(1), backend="native")(x)
        assert y is x
        assert x.tolist() == [2.0] * 3
    assert len(written) == 1


@pytest.mark.parametrize(
    "other",
    [
        torch.randn(4, 5),
        torch.randn(4, 4).t(),
        torch.randn(4, 4, dtype=torch.float64),
        torch.randn(4, 4)[:, ::2],
    ],
    ids=["shape", "strides", "dtype", "gaps"],
)
def test_what_is_laid_out_otherwise_is_another_graph(
    other: torch.Tensor, written: list[Any]
) -> None:
    for value in (torch.randn(4, 4), other):
        run(lambda x: x * 2 + 1, value)
    assert len(written) == 2


def test_an_optimizer_s_state_is_named_alike_in_each_process(written: list[Any]) -> None:
    kept = []
    for _ in range(2):
        parameters = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        kept.append(optimizer)  # so that addresses differ
        step = dynacap.compile(optimizer.step, backend="native")
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = torch.ones(3)
            step()
        dynacap.reset()
    assert len(written) == 2  # the first step makes the state


def test_another_number_is_another_graph(written: list[Any]) -> None:
    for number in (1, 1.0, True, -0.0, 0.0):
        run(lambda x, n=number: x + n, torch.zeros(3))
    assert len(written) == 5


def test_torchs_state_is_part_of_the_description(written: list[Any]) -> None:
    x = torch.randn(4, 4)
    plain = run(lambda x: x @ x, x)
    with torch.autocast("cpu", torch.bfloat16):
        cast = run(lambda x: x @ x, x)
    assert (plain.dtype, cast.dtype) == (torch.float32, torch.bfloat16)
    run(lambda x: x + torch.zeros(1), x)
    torch.set_default_dtype(torch.float64)
    try:
        assert run(lambda x: x + torch.zeros(1), x.double()).dtype is torch.float64
        assert run(lambda x: torch.zeros(1) + 1, x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert run(lambda x: torch.zeros(1) + 1, x).dtype is torch.float32
    assert len(written) == 6


def test_a_function_that_is_not_torchs_has_no_description(written: list[Any]) -> None:
    scale = [2.0]

    @dynacap.allow_in_graph
    def own(x: torch.Tensor) -> Any:
        return x * scale[0]

    x = torch.ones(3)
    run(lambda x: own(x) + 1, x)
    scale[0] = 5.0
    assert run(lambda x: own(x) + 1, x).tolist() == [6.0] * 3
    assert len(written) == 2


def test_a_constant_tensor_is_taken_as_it_is_now(written: list[Any]) -> None:
    for values in ([1.0, 2.0], [3.0, 4.0]):
        run(lambda x, v=values: x + torch.tensor(v), torch.ones(2))
    assert len(written) == 2


def test_an_operator_that_fails_raises_what_eager_raises(written: list[Any]) -> None:
    def fn(x: torch.Tensor) -> Any:
        return torch.linalg.cholesky(x) + 1

    for _ in range(2):
        run(fn, torch.eye(3))
    assert len(written) == 1
    compiled = dynacap.compile(fn, backend="native")
    compiled(torch.eye(3))
    for broken in (-torch.eye(3), torch.zeros(3, 3)):
        with pytest.raises(RuntimeError, match="not positive-definite") as caught:
            compiled(broken)
        assert type(caught.value).__name__ == "_LinAlgError"


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x00" * 99])
@pytest.mark.parametrize("kind", ["graph", "so"])
def test_what_is_damaged_is_made_again(
    own_cache: Path, written: list[Any], kind: str, damage: bytes
) -> None:
    run(lambda x: x * 3, torch.ones(3))
    (file,) = own_cache.glob(f"*.{kind}")
    file.unlink()
    file.write_bytes(damage)
    run(lambda x: x * 3, torch.ones(3))
    assert len(written) == 2
    run(lambda x: x * 3, torch.ones(3))
    assert len(written) == 2


VARYING: dict[str, Fn] = {
    "pointwise": lambda x: (x + 1).exp() * torch.sigmoid(x),
    "products": lambda x: (x @ x.t()).softmax(-1) @ x,
    "sizes as results": lambda x: (x.shape[0] * 2 + 1, x.reshape(-1), x.numel() // 2),
    "sizes as operands": lambda x: x / x.shape[0] + torch.arange(x.shape[1]),
    "halves": lambda x: x[: x.shape[0] // 2].repeat(3, 1),
    "a library function": lambda x: F.layer_norm(F.pad(x, (1, 2)), (x.shape[1] + 3,)),
    "windows": lambda x: F.avg_pool1d(x[None], 2).sum(-1),
}


@pytest.mark.parametrize("name", VARYING)
def test_graphs_of_sizes_that_vary_are_found_again(name: str, written: list[Any]) -> None:
    fn = VARYING[name]
    captures = []
    for _ in range(2):
        dynacap.reset()
        compiled = dynacap.compile(fn, backend="native", dynamic=True)
        for shape in ((4, 6), (8, 6), (5, 7), (2, 3), (9, 9)):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), fn(x))
        captures.append(dynacap.counters()["frames"])
    assert len(written) == captures[0] == captures[1]


def test_a_float_that_varies_is_found_again(written: list[Any]) -> None:
    for _ in range(2):
        dynacap.reset()
        compiled = dynacap.compile(lambda x, n: x * n + n / 2, backend="native")
        for number in (0.5, 1.5, -2.0):
            torch.testing.assert_close(
                compiled(torch.ones(3), number), torch.ones(3) * 1.5 * number
            )
    assert len(written) == 2  # it varies from its second value on


def test_what_tracing_asks_of_sizes_keeps_a_graph_from_being_noted(
    written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = trace.compile_traced

    def asking(graph_module: Any, *rest: Any) -> Any:
        env = shape_env(graph_module)
        (symbol,) = env.backed_var_to_val
        assert not env.evaluate_expr(symbol > 100)
        return traced(graph_module, *rest)

    monkeypatch.setattr(backend, "compile_traced", asking)
    for _ in range(2):
        dynacap.reset()
        x = torch.randn(5)
        dynacap.mark_dynamic(x, 0)
        torch.testing.assert_close(dynacap.compile(torch.sin, backend="native")(x), x.sin())
    assert len(written) == 2


def test_inputs_are_not_kept(written: list[Any]) -> None:
    for _ in range(2):
        dynacap.reset()
        x = torch.ones(3)
        compiled = dynacap.compile(lambda x: x + 1, backend="native")
        compiled(x)
        died = weakref.ref(x)
        del x
        assert died() is None
    assert len(written) == 1

"""What a functional graph would compute and eager PyTorch refuses, or leaves half done."""

import functools
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap
from dynacap import log
from dynacap.backends import compile_graph, lookup_backend
from dynacap.fxlite import Graph, GraphModule
from dynacap.testing import check_same
from tests.backends.native.against_eager import compiled, same

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def table() -> Tensor:
    return torch.arange(12.0).reshape(3, 4)


def index_assignment(x: Tensor) -> Tensor:
    x[1:] = x[:-1]
    return x


def rows_apart(x: Tensor) -> Tensor:
    x[1] = x[0]
    x[:, :2].mul_(x[:, 2:])
    return x


def one_and_the_same(x: Tensor) -> Tensor:
    x.add_(x)
    x += x[:]
    return torch.add(x, 1, out=x)


def copied_along(x: Tensor) -> Tensor:
    return x.index_copy_(0, torch.tensor([2, 1, 0]), x)


WRITES: list[Callable[[Tensor], Any]] = [
    lambda x: x[1:].add_(x[:-1]),
    index_assignment,
    rows_apart,
    one_and_the_same,
    copied_along,
    lambda x: torch.add(x[:-1], 1, out=x[1:]),
    lambda x: x[:, :3].add_(x[:, :3].t()),
    lambda x: x[:1].expand(3, 4).add_(1),
    lambda x: torch.mul(x[:1, :2], 3, out=x[2:, 2:]),
]


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_what_is_read(write: Callable[[Tensor], Any]) -> None:
    def function(x: Tensor) -> Any:
        try:
            return write(x), x
        except RuntimeError as error:
            return str(error).partition(".")[0], x

    same(function, table())


@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 3)])
def test_an_argument_that_meets_itself(strides: tuple[int, int]) -> None:
    def function(x: Tensor) -> Any:
        x.mul_(3)
        x[0].add_(x[1] * 2)
        return x.sum()

    same(function, torch.arange(12.0).as_strided((3, 3), strides))


def singular(x: Tensor, i: Tensor) -> Any:
    x.zero_()
    return torch.linalg.inv(x[:, :3])


def out_of_range(x: Tensor, i: Tensor) -> Tensor:
    x.add_(1)
    i.mul_(7)
    return torch.embedding(x, i)


def after_a_draw(x: Tensor, i: Tensor) -> Any:
    x.add_(torch.rand(3, 4)).zero_()
    return torch.linalg.inv(x[:, :3])


@pytest.mark.parametrize("function", [singular, out_of_range, after_a_draw])
@pytest.mark.parametrize("gradient", [False, True])
def test_what_was_changed_before_an_error(function: Any, gradient: bool) -> None:
    """It is changed after it too, and random numbers were drawn once."""

    def trained(x: Tensor, i: Tensor, w: Tensor) -> Any:
        return (function(x, i) * w).sum()

    weight = torch.tensor(2.0, requires_grad=gradient)
    torch.manual_seed(0)
    same(trained, table(), torch.tensor([0, 2]), weight)


def resized(x: Tensor, small: Tensor) -> Any:
    return torch.mul(x, 2, out=small), small.shape


def test_an_argument_that_is_resized() -> None:
    same(resized, table(), torch.empty(0))


def test_a_leaf_made_inside() -> None:
    same(lambda x: x * torch.ones(4, requires_grad=True), table())


def test_no_derivative() -> None:
    x = table().requires_grad_()
    assert compiled(lambda x: torch.floor_divide(x, 2) + x)(x).requires_grad
    same(lambda x: torch.floor_divide(x, 2) + x, x)


def powers(x: Tensor) -> Tensor:
    x **= 2
    x //= 3
    x %= 2
    return x.float_power_(2) if x.dtype is torch.float64 else x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_place_operators_of_several_overloads(dtype: torch.dtype) -> None:
    same(powers, table().to(dtype))


def test_a_stride_that_varies() -> None:
    def function(x: Tensor) -> Any:
        b, s, d = x.shape
        return x.view(b, s, 2, d // 2).transpose(1, 2).reshape(b, -1)

    x = torch.arange(24.0).reshape(2, 3, 4)
    check_same(function, (x,), (x[:, :2],), (x[:1],), (x,), compile=compiled)


def test_a_size_in_the_data_of_one_that_varies() -> None:
    def function(x: Tensor) -> Any:
        return x[x > 1].sum() + 1, torch.nonzero(x > 1)

    with dynacap.config.patch(capture_dynamic_output_shape_ops=True):
        check_same(function, *((torch.arange(n + 0.0),) for n in (4, 5, 6)), compile=compiled)


def test_inference_mode_ends_with_the_error() -> None:
    def function(x: Tensor, i: Tensor) -> Any:
        try:
            with torch.inference_mode():
                y = x[i]
        except IndexError:
            y = x
        return y, torch.is_inference_mode_enabled()

    same(function, table(), torch.tensor([7]))


def test_hooks_of_modules() -> None:
    """They look for the node of the backward pass that they were put on."""
    seen: list[Tensor] = []
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))

    def hook(module: Any, given: Any, got: Any) -> None:
        seen.append(got[0].clone())

    net[0].register_full_backward_hook(hook)
    x = torch.ones(2, 3, requires_grad=True)
    for each in (net, dynacap.compile(net, backend="native")):
        each(x).sum().backward()
    torch.testing.assert_close(seen[1], seen[0])


def test_reductions_of_complex_numbers() -> None:
    x = torch.tensor([[1 + 2j, 0], [0, 0]])
    same(lambda x: (x.any(), x.all(1), torch.linalg.vector_norm(x), x.abs().sum()), x)


@torch.library.custom_op("dynacap_test::loud", mutates_args=())
def loud(x: Tensor, n: int) -> Tensor:
    """Someone sees each call of it."""
    print("loud", n)
    if n > 1:
        raise ValueError(f"{n} is too loud")
    return x + n


@loud.register_fake
def _(x: Tensor, n: int) -> Tensor:
    return torch.empty_like(x)


loud.register_autograd(lambda ctx, grad: (grad, None))


def louder(x: Tensor, n: int) -> Any:
    return loud(x * 2, n) + 1


def louder_after_a_change(x: Tensor, n: int) -> Any:
    x += 1
    return loud(x * 2, n)


def loud_before_an_error(x: Tensor, n: int) -> Any:
    return loud(x, 1)[torch.full((1,), 7 * n)]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", [louder, louder_after_a_change, loud_before_an_error])
def test_code_of_others_runs_once(function: Any, grad: bool) -> None:
    def called(x: Tensor, n: int) -> Any:
        try:
            return function(x * 1 if grad else x, n)
        except (ValueError, IndexError) as error:
            return type(error), str(error)

    for n in (1, 2, 3):
        same(called, table().requires_grad_(grad), n)


def test_a_tensor_made_in_inference_mode_is_changed_once() -> None:
    function = compiled(lambda x, y: x * y.add_(1).sum())
    for frozen in (False, True):
        with torch.inference_mode(frozen):
            y = torch.ones(3)
        x = torch.ones(3, requires_grad=True)
        if frozen:
            with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
                function(x, y)
        else:
            torch.testing.assert_close(function(x, y), torch.full((3,), 6.0))
        assert y.tolist() == [2, 2, 2]


def multiplied(x: Tensor, s: float) -> Tensor:
    whole = x.int()
    whole *= x
    return whole


REFUSED: dict[str, Callable[[Tensor, Any], Any]] = {
    "differences of truth values": lambda x, s: (x - True, True - x),
    "a difference of masks": lambda x, s: (x > 0).float() - (x > 0),
    "alpha is a truth value": lambda x, s: torch.add(x, x, alpha=True),
    "alpha of whole numbers": lambda x, s: torch.add(x.int(), x.int(), alpha=1.5),
    "too large to fill with": lambda x, s: torch.full_like(x, 1e300),
    "too large for a byte": lambda x, s: torch.where(x > 0, x.to(torch.int8), 300),
    "too large a bound": lambda x, s: x.clamp(min=-1e300),
    "too large a half": lambda x, s: x.half().masked_fill(x > 0, 70000.0),
    "too large a factor": lambda x, s: torch.add(x, x, alpha=1e300 * x.dim()),
    "too large, of an argument": lambda x, s: torch.add(x, x, alpha=s) + torch.full((4,), s),
    "too large, computed": lambda x, s: x.masked_fill(x > 0, s * 2),
    "whole numbers between": lambda x, s: torch.lerp(x.int(), x.int(), 0.5),
    "truth values cut off": lambda x, s: torch.abs(x > 0),
    "a place of 32 bits": lambda x, s: x.index_copy(0, x[:1].int(), x[1:2]),
    "fractions of whole numbers": lambda x, s: x.int().mul_(0.5),
    "fractions, by an operator": multiplied,
    "whole numbers and more": lambda x, s: x.long().t().addcmul_(x, x),
    "truth values that are doubled": lambda x, s: (x > 2).mul_(2),
    "complex ones": lambda x, s: x.add_(1j),
    "bits of floats": lambda x, s: (x & x, x ^ x),
    "no such dimension": lambda x, s: x.softmax(1),
    "no such dimension, turned": lambda x, s: x[None].t().log_softmax(-3),
    "softmax of whole numbers": lambda x, s: x.int().softmax(0),
    "classes that are too many": lambda x, s: F.one_hot(x.long(), 3) + 1,
    "classes below zero": lambda x, s: F.one_hot(x.long() - 1, 4).sum(0),
    "classes as they should be": lambda x, s: F.one_hot(x.long(), 4) * 2,
    "no classes": lambda x, s: F.one_hot(x.long(), 0),
    "no whole number of a class": lambda x, s: F.one_hot(x, 4),
    "targets of 32 bits": lambda x, s: torch.nn.functional.nll_loss(x, x[0].int()),
}


def test_what_is_not_refused() -> None:
    """Sizes that come out as equal only in torch's algebra, and tensors of no kernel at all."""

    def halves(x: Tensor, y: Tensor) -> Any:
        part = x[: x.shape[0] // 2].t().clone()
        return part.mul_(y[: y.shape[0] // 3].t()).softmax(0) + part, F.layer_norm(x, x.shape[-1:])

    def of_no_data(x: Tensor, y: Tensor) -> Any:
        bits = torch.ones(3, device="meta")
        return x + (bits & bits).shape[0]

    def classes(x: Tensor, y: Tensor) -> Any:
        return F.one_hot(x[0].long() % 2, num_classes=x.shape[1]) + 1

    for function in (halves, of_no_data, classes):
        calls = [(torch.rand(2 * n, n + 3), torch.rand(3 * n, n + 3)) for n in (3, 4, 5)]
        dynamic = functools.partial(dynacap.compile, backend="native", dynamic=True)
        check_same(function, *calls, compile=dynamic, breaks=0)


def test_classes_of_a_number_that_varies() -> None:
    calls = [(torch.tensor([0, 4]), n) for n in (5, 6, 4, 7)]
    check_same(lambda i, n: F.one_hot(i, n) + 1, *calls, compile=compiled)


@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED)
def test_numbers_and_dtypes_that_only_kernels_refuse(function: Callable[..., Any]) -> None:
    calls = [(torch.arange(4.0), s) for s in (0.5, 1.5, 2.5, 3e38, -3.4e38, 1e300, math.inf)]
    check_same(function, *calls, compile=lambda f: dynacap.compile(f, backend="native"))


LISTS: list[Callable[[Tensor, Tensor], Any]] = [
    lambda x, y: torch._foreach_mul_([x, y], [y, x]),
    lambda x, y: torch._foreach_add_([x, x], 1.0),
    lambda x, y: torch._foreach_addcmul_([x, y], [y, y], [x, x], 0.5),
    lambda x, y: torch._foreach_add_([x[0], x[1]], [x[1], x[0]]),
    lambda x, y: torch._foreach_add_([x, y], [x, y]),
]


@pytest.mark.parametrize("write", LISTS)
def test_tensors_of_a_list_that_change_one_another(write: Callable[..., Any]) -> None:
    calls = [(table(), table() + 2) for _ in range(2)]
    check_same(write, *calls, compile=lambda f: dynacap.compile(f, backend="native"))


def test_whole_numbers_in_a_pool() -> None:
    """Its kernel takes floats only; what it is on fake tensors takes all."""

    def pooled(x: Tensor) -> Any:
        try:
            return torch.max_pool1d(x, 2)
        except NotImplementedError as error:
            return str(error), torch.nn.functional.max_pool1d(x, 2, return_indices=True)

    same(pooled, table().long())
    same(pooled, table())


@pytest.mark.parametrize("gradient", [False, True])
def test_what_fake_tensors_refuse_and_eager_takes(gradient: bool) -> None:
    graph = Graph()
    nothing, weight = graph.placeholder("nothing"), graph.placeholder("weight")
    whole = graph.call_function(torch.log_softmax, (nothing, -1))
    graph.output((whole, graph.call_function(torch.mul, (weight, 2))))
    inputs = [torch.ones(2, 0, dtype=torch.bool), torch.ones(3, requires_grad=gradient)]
    run = compile_graph(lookup_backend("native"), GraphModule({}, graph, "graph"), inputs)
    empty, double = run(*inputs)
    assert (empty.shape, empty.dtype) == ((2, 0), torch.bool)
    assert torch.equal(double, inputs[1] * 2)


def test_a_loss_that_torch_takes_apart_into_another() -> None:
    target = torch.tensor([[3, -1, 1, 0], [1, 0, -1, 2], [-1, -1, 0, 0]])
    x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    check_same(torch.nn.functional.multilabel_margin_loss, (x, target), compile=compiled)


def stepped(make: Callable[..., torch.optim.Optimizer]) -> Callable[..., Any]:
    def run(step: Callable[..., Any]) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = make(model.parameters())
        model(torch.ones(2, 3)).square().sum().backward()
        step(optimizer)
        return list(model.parameters())

    return run


def test_what_an_operator_refuses_is_no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """And torch says nothing of what it is traced on."""
    for function in (
        lambda x: x.index_select(0, torch.zeros(2, 2, dtype=torch.long)),
        lambda x: F.adaptive_avg_pool2d(x[:, None], (0, 2)),
        lambda x: x.scatter(5, torch.zeros(2, 2, dtype=torch.long), x),
    ):
        log.forget_warnings()
        with dynacap.config.patch(raise_internal_errors=False):
            check_same(function, (table().requires_grad_(),), compile=compiled)
    said = " ".join(record.message for record in caplog.records)
    assert "runs eagerly: on fake tensors it raises" in said
    assert "please report" not in said
    assert "failed while attempting" not in said


def error_of_nothing(function: Callable[..., Any]) -> Any:
    x = torch.zeros(0, requires_grad=True)
    loss = function(x, torch.zeros(0))
    loss.backward()
    return loss, x.grad


MIXED: dict[str, Callable[..., Any]] = {
    "mm": lambda x, w: x @ w,
    "addmm": lambda x, w: torch.addmm(w[0], x, w),
    "addmm, in loops": lambda x, w: torch.addmm(w[0], x, w).relu(),
    "what is added": lambda x, w: torch.addmm(w[0], x, w.to(x.dtype)),
    "bmm": lambda x, w: torch.bmm(x[None], w[None]),
    "linear": lambda x, w: F.linear(x, w, w[0]),
    "layer_norm": lambda x, w: F.layer_norm(x, (4,), w[0]),
    "batch_norm": lambda x, w: F.batch_norm(x, w[0], w[1].exp()),
    "group_norm": lambda x, w: F.group_norm(x, 2, w[0], w[1]),
    "nll_loss": lambda x, w: F.nll_loss(x, torch.tensor([1, 2, 0, 3]), w[0]),
    "softmax": lambda x, w: x.softmax(0),
    "log_softmax": lambda x, w: x.log_softmax(0),
}


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64], ids=str
)
def test_dtypes_that_only_operators_refuse(name: str, dtype: torch.dtype) -> None:
    x, w = torch.randn(4, 4).to(dtype), torch.randn(4, 4)
    same(MIXED[name], x, w)
    if dtype is torch.float64:
        same(MIXED[name], x, w.requires_grad_())


def test_a_sparse_gradient_of_what_is_changed() -> None:
    same(torch.nn.Embedding(10, 6, max_norm=1.0, sparse=True), torch.tensor([1, 2, 1]))


@pytest.mark.parametrize(
    ("program", "function", "reason"),
    [
        (stepped(lambda p: torch.optim.SGD(p, 0.1, fused=True)), "step", "no fake implementation"),
        (stepped(lambda p: torch.optim.Adam(p, fused=True)), "step", "with fused=True"),
        (stepped(lambda p: torch.optim.SGD(p, torch.tensor(0.1))), "step", "lies in the data"),
        (error_of_nothing, "mse_loss", "elements a tensor has, which are none"),
    ],
)
def test_reasons_in_the_users_words(program: Any, function: str, reason: str, caplog: Any) -> None:
    log.forget_warnings()
    functions: dict[str, Any] = {
        "step": lambda optimizer: optimizer.step(),
        "mse_loss": torch.nn.functional.mse_loss,
    }
    expected = program(functions[function])
    with caplog.at_level(logging.WARNING, "dynacap"):
        found = program(dynacap.compile(functions[function], backend="native"))
    torch.testing.assert_close(found, expected, equal_nan=True)
    said = " ".join(record.message for record in caplog.records)
    assert reason in said
    assert "please report" not in said

"""Operations: what they give, which objects they give, and what cannot be captured."""

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dynacap.testing import Scenario, call, check_same, program, scenario

X = torch.arange(12.0).reshape(3, 4) - 5
WEIGHT = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()


@program((X.clone(),))
def test_results_that_are_their_operand(x: Tensor) -> Any:
    y = x * 1
    same = [
        y.add_(1) is y,
        y.to(torch.float32) is y,
        y.float() is y,
        y.contiguous() is y,
        y.cpu() is y,
        y.requires_grad_(False) is y,
        y.double() is y,
        y.view(3, 4) is y,
        y.detach() is y,
        torch.as_tensor(y) is y,
        F.dropout(y, 0.5, training=False) is y,
        operator.iadd(y, 1) is y,
    ]
    return same, y, x.mul_(2) is x


@program((X.clone(),))
def test_in_place_then_views_see_it(x: Tensor) -> Any:
    y = x * 2
    row, column = y[1], y[:, 2]
    y += 1
    row.mul_(10)
    column[0] = 7
    flat = y.view(-1)
    flat[-1] = -3.0
    return y, row, column, flat


@program((X.clone(), X[0].clone()), (X.double(), X[0].double()))
def test_in_place_on_views_of_arguments(x: Tensor, y: Tensor) -> Any:
    x[0].add_(y)
    x.t()[1].zero_()
    y.unsqueeze_(0)
    return x.sum(), y.shape


@program((X,))
def test_out_of_two_results(x: Tensor) -> Any:
    values, where = torch.empty(3), torch.empty(3, dtype=torch.long)
    got = torch.max(x, 1, out=(values, where))
    return got[0] is values, got.indices is where, got


@program((X,))
def test_named_results(x: Tensor) -> Any:
    top = x.topk(2, dim=1)
    low, at = torch.min(x, dim=0)
    q, r = torch.linalg.qr(x)
    return top, top.values + low[0], at, type(top).__name__, q @ r, len(top), torch.std_mean(x)


@program((X,))
def test_results_in_lists_and_tuples(x: Tensor) -> Any:
    parts = list(x.split(2, 1)) + list(torch.unbind(x)) + list(x.chunk(2))
    grids = torch.meshgrid(x[0], x[1], indexing="ij")
    doubled = torch._foreach_add([x, x], 1.0)
    return [p.sum() for p in parts], grids, doubled, torch.broadcast_tensors(x, x[:1])


@program((X, WEIGHT))
def test_operators_with_numbers_on_either_side(x: Tensor, w: Tensor) -> Any:
    both = x @ w.T
    return (
        (1 + both, 2 - both, 3 * both, 4 / (both + 0.5), both // 2, both % 3, both**2, 2**both),
        (-both, +both, abs(both), ~(both > 0), (both > 0) & (both < 2), (both > 0) | (both < -1)),
        (5 // (both.abs() + 1), 7 % (both.abs() + 1), both == 1, both != 1, 1 < both, 2 >= both),
        (x.long() << 1, 1 << x.long().clamp(0, 3), x.long() >> 1, x.long() ^ 3, 3 & x.long()),
    )


@program((X,))
def test_comparison_with_what_no_tensor_compares_to(x: Tensor) -> Any:
    return x == None, x != None, x == "text", None == x, x is None, x.eq(x).all()  # noqa: E711


@program((X,))
def test_operator_that_torch_refuses(x: Tensor) -> Any:
    try:
        return x + "text"
    except TypeError as error:
        return str(error)


@program((X,), breaks=1)
def test_operation_that_fails(x: Tensor) -> Any:
    y = x + 1
    try:
        return y @ y
    except RuntimeError as error:
        return str(error), y


@program((X,))
def test_metadata_is_constant(x: Tensor) -> Any:
    y = x.T
    return (
        (y.size(), y.size(0), y.stride(), y.dim(), y.numel(), y.nelement(), y.ndimension()),
        (y.is_contiguous(), y.contiguous().is_contiguous(), y.element_size(), y.get_device()),
        (torch.is_floating_point(y), y.is_complex(), torch.numel(y), y.type(), y.is_signed()),
        (torch.result_type(x, 1.0), torch.promote_types(torch.int8, torch.float16)),
        (torch.broadcast_shapes((3, 1), (4,)), y.shape.numel(), y.is_same_size(x), y + 1),
    )


@program((X, torch.tensor([True, False, True]), torch.tensor([2, 0])))
def test_indices_of_every_kind(x: Tensor, mask: Tensor, at: Tensor) -> Any:
    return (
        (x[0], x[-1], x[1:], x[::2], x[..., 1], x[:, None], x[0, 1], x[1:, 1:3], x[()]),
        (x[at], x[at, 1], x[:, at], x[at, at], x[[0, 2]], x[[0, 2], [1, 3]], x[at[:, None], at]),
        (x[[True, False, True]], x[True], x[slice(1, None)], x[range(2)], x[None, ..., None]),
    )


@program((X.clone(), torch.tensor([True, False, True]), torch.tensor([2, 0])))
def test_assignments_of_every_kind(x: Tensor, mask: Tensor, at: Tensor) -> Any:
    x[0] = 1
    x[:, 1] = torch.ones(3)
    x[mask] = -1.0
    x[at, 3] = x[at, 0] * 2
    x[x > 3] = 0
    x[1, ...] += 4
    x[[0, 2], [1, 2]] = torch.tensor([8.0, 9.0])
    return x


@program((X,), breaks=1)
def test_mask_that_decides_the_shape(x: Tensor) -> Any:
    y = x * 2
    return y[y > 0] + 1


@program((X,), breaks=1)
def test_item(x: Tensor) -> Any:
    return x.sum().item() + 1


@program((X,), (X * -1,), breaks=None)
def test_branch_on_data(x: Tensor) -> Any:
    return x + 1 if x[0, 0] > 0 else x - 1


@program((X,))
def test_iteration_and_length(x: Tensor) -> Any:
    first, *rest = x
    pairs = [(a + b) for a, b in zip(x, reversed(list(x)), strict=True)]
    return first, rest, pairs, len(x), [row[0] for row in x], next(iter(x))


@pytest.mark.parametrize("use", [len, iter, list], ids=["len", "iter", "list"])
def test_no_dimension_no_length(use: Any) -> None:
    def f(x: Tensor) -> Any:
        try:
            return use(x + 1)
        except TypeError as error:
            return str(error)

    check_same(f, (torch.tensor(1.0),))


@program(graphs=1)
def test_factories() -> Any:
    return (
        (torch.zeros(2, 3), torch.ones((2,), dtype=torch.long), torch.full((2,), 1.5)),
        (torch.arange(5), torch.arange(0.0, 1.0, 0.25), torch.linspace(0, 1, 3), torch.eye(2)),
        (torch.tensor([[1, 2], [3, 4]]), torch.tensor(2.5), torch.as_tensor([True, False])),
        (torch.empty(0), torch.Tensor([1.0, 2.0]), torch.tril(torch.ones(3, 3))),
        (torch.finfo(torch.float16).max, torch.iinfo(torch.int8).min, torch.tensor(3).dtype),
    )


@program((X,))
def test_factories_after_a_tensor(x: Tensor) -> Any:
    n = x.shape[0]
    return (
        (torch.zeros_like(x), x.new_ones(2), x.new_tensor([1, 2]), torch.empty_like(x).fill_(2)),
        (torch.arange(n, device=x.device), torch.ones(n, n, dtype=x.dtype).triu(1)),
    )


@program((X,), (X,))
def test_random_numbers_are_eagers(x: Tensor) -> Any:
    a, b = torch.rand(3), torch.randn_like(x)
    c = F.dropout(x, 0.5) + torch.bernoulli(torch.full((3, 4), 0.5))
    d = torch.empty(3).uniform_(-1, 1).normal_()
    return a, b, c, d, torch.randperm(5), torch.randint(0, 9, (4,)), torch.multinomial(a, 2)


@program((X.clone().requires_grad_(), X.clone()))
def test_gradient_flags(x: Tensor, y: Tensor) -> Any:
    z = x * y
    detached = z.detach()
    flags = [t.requires_grad for t in (x, y, z, detached, z.data, y + 1)]
    leaves = [t.is_leaf for t in (x, y, z, detached, z.data, y + 1)]
    same = x.requires_grad_() is x, y.requires_grad_(False) is y
    return flags, leaves, same, (y * 2).requires_grad, z, y.grad, x.grad


@program((X.clone(),), breaks=None)
def test_flag_that_changes(y: Tensor) -> Any:
    z = y * 2
    y.requires_grad = True
    z.requires_grad_()
    return y.requires_grad, (y * 2).requires_grad, z.is_leaf, z


@scenario()
def test_argument_that_is_no_leaf() -> Scenario:
    def f(x: Tensor) -> Any:
        y = x * 2
        return x.is_leaf, x.requires_grad, y, x.add_(1) is x, x.t().is_leaf

    leaf = X.clone().requires_grad_()
    return Scenario(f, [call(leaf * 1.0), call(leaf * 3.0)])


@program((X.clone(),))
def test_attributes_of_ones_own(x: Tensor) -> Any:
    y = x + 1
    y.note = "made here"  # type: ignore[attr-defined]
    x.seen = y.note  # type: ignore[attr-defined]
    x.friend = y  # type: ignore[attr-defined]
    return hasattr(y, "note"), hasattr(y, "other"), getattr(x, "missing", 3), x.friend is y, y


@program((X,), call(X.to(torch.float64)))
def test_operators_by_other_names(x: Tensor) -> Any:
    return (
        torch.ops.aten.add.Tensor(x, x),
        torch.ops.aten.relu(x),
        torch._C._nn.gelu(x),
        torch.Tensor.add(x, 1),
        torch.Tensor.__add__(x, 1),
        operator.mul(x, 2),
        operator.getitem(x, 0),
        torch.special.expit(x),
        torch.fft.rfft(x),
        torch.linalg.norm(x),
        torch._VF.chunk(x, 2, 1),  # type: ignore[attr-defined]
    )

"""Tensors: indexing, views, in-place, `out=`, factories, random numbers, shapes, dtypes."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dynacap.testing import call, program

X = torch.arange(24.0).reshape(2, 3, 4)
Y = torch.arange(6.0).reshape(2, 3)
LEAF = torch.arange(3.0).requires_grad_()


@program((X,))
def test_indexing_basic(x: Tensor) -> Any:
    return (
        x[0],
        x[-1, 1:],
        x[..., 0],
        x[None],
        x[:, None, 1],
        x[0, 1, 2],
        x[::2, ::2],
        x[:, 1:2, -1:],
    )


@program((X, torch.tensor([0, 1, 1]), torch.tensor([True, False])))
def test_indexing_with_tensors(x: Tensor, at: Tensor, mask: Tensor) -> Any:
    return x[at], x[:, at], x[at, at], x[..., at], x[[0, 1]], x[:, [2, 0]], x[(at, 0)]


@program((X, np.array([1, 0])))
def test_indexing_with_lists_and_arrays(x: Tensor, at: Any) -> Any:
    return x[[True, False]], x[[[0, 1], [1, 0]]], x[torch.tensor(1)], x[True], x[range(2)]


@program((X.clone(), torch.tensor([0, 1])))
def test_index_assignment(x: Tensor, at: Tensor) -> Any:
    x[0, 0] = 5
    x[:, 1] = torch.ones(4)
    x[at, 2] = at[:, None].float()
    x[x > 20] = -1
    x[..., -1] += 3
    x[1, :, 0] *= 2
    x[None, 0] = x[1]
    return x


@program((Y.clone(),))
def test_inplace_methods(y: Tensor) -> Any:
    y.add_(1).mul_(2).sub_(0.5).clamp_(0, 8)
    y.masked_fill_(y > 5, 0.0)
    y.t_()
    y.unsqueeze_(0)
    y.fill_diagonal_(1) if y.dim() == 2 else y.squeeze_(0)
    return y, y.shape


@program((Y.clone(), torch.empty(2, 3), torch.empty(0)))
def test_out_arguments(y: Tensor, out: Tensor, small: Tensor) -> Any:
    a = torch.add(y, 1, out=out)
    b = torch.mul(y, 2, out=small)
    return a is out, b is small, out, small.shape


@program((Y, torch.empty(2), torch.empty(2, dtype=torch.long)))
def test_out_tuple(y: Tensor, values: Tensor, where: Tensor) -> Any:
    got = torch.max(y, 1, out=(values, where))
    return got.values is values, values, where


@program((Y,))
def test_views_share_memory(y: Tensor) -> Any:
    a, b = y.view(3, 2), y.reshape(-1)
    c, d, e = y.t(), y[0], y.unbind(0)
    return a, b, c, d, e, y.expand(4, 2, 3), y.as_strided((2,), (2,), 1), y.detach(), y.chunk(2, 1)


@program((Y.clone(),))
def test_views_made_inside_then_mutated(y: Tensor) -> Any:
    base = y * 2
    left, right = base[:, :1], base[:, 1:]
    left.zero_()
    right += 1
    return base, left, right, base.view(-1)


@program((Y,))
def test_splitting_and_joining(y: Tensor) -> Any:
    a, b = y.split(1)
    first, *rest = torch.tensor_split(y, 3, dim=1)
    return (
        torch.cat([a, b], 0),
        torch.stack((a, b), dim=-1),
        first,
        rest,
        torch.hstack([y, y]),
        y.tile(2),
    )


@program((Y,))
def test_factories(y: Tensor) -> Any:
    return (
        (torch.zeros(2, 3), torch.ones((2,)), torch.full((2,), 7), torch.eye(2), torch.empty(0)),
        (torch.arange(5), torch.arange(1, 2, 0.25), torch.linspace(0, 1, 3), torch.tensor([1, 2])),
        (torch.zeros_like(y), torch.full_like(y, 3), y.new_ones(2), y.new_tensor([1.0])),
        (
            torch.tensor(3.5),
            torch.tensor([[1.0], [2]]),
            torch.as_tensor([1]),
            torch.scalar_tensor(2),
        ),
        torch.tensor([1, 2], dtype=torch.float64) + y[:, 0],
    )


@program((Y,))
def test_factories_return_fresh_tensors_each_call(y: Tensor) -> Any:
    z = torch.zeros(2)
    z += y[:, 0]
    return z


@program((Y,))
def test_random_factories(y: Tensor) -> Any:
    return (
        (torch.rand(2), torch.randn(2, 2), torch.randint(0, 9, (3,)), torch.randperm(4)),
        (
            torch.rand_like(y),
            torch.bernoulli(torch.full((3,), 0.5)),
            y.clone().uniform_(),
            y.clone().normal_(),
        ),
        (torch.multinomial(torch.ones(4), 2), torch.normal(0.0, 1.0, (2,)), F.dropout(y, 0.5)),
    )


@program((Y,), breaks=None)
def test_manual_seed_inside(y: Tensor) -> Any:
    torch.manual_seed(3)
    a = torch.rand(2)
    torch.manual_seed(3)
    return a, torch.rand(2), y + 1


@program((Y,), breaks=None)
def test_generator_argument(y: Tensor) -> Any:
    g = torch.Generator().manual_seed(5)
    return torch.rand(2, generator=g), torch.randperm(4, generator=g), y


@program(call(X), call(X[:, :2]), call(X[:1]), call(X))
def test_shape_arithmetic(x: Tensor) -> Any:
    b, s, d = x.shape
    half, tail = d // 2, (d // 2,)
    y = x.view(b, s, 2, half).transpose(1, 2).reshape(b, -1)
    return y, x.size(1) * 2, x.size()[:-1] + tail, x.numel(), x.shape[-1] ** -0.5, len(x)


@program(call(X, 1), call(X, 2), call(X, 3))
def test_changing_python_numbers(x: Tensor, n: int) -> Any:
    return x[:, :n] * n, x / n, torch.full((n,), float(n)), list(range(n))


@program(call(Y, 0.5), call(Y, 1.5), call(Y, 2.5))
def test_changing_floats(y: Tensor, rate: float) -> Any:
    return y * rate, rate > 1, round(rate * 3, 2), f"{rate:.1f}"


@program(call(Y), call(Y.double()), call(Y.int()), call(Y > 1), call(Y.t()), call(Y[None]))
def test_changing_dtype_and_layout(y: Tensor) -> Any:
    return y + 1, y.dtype, y.is_contiguous(), y.stride(), y.dim(), y.is_floating_point()


@program(call(Y), call(Y.clone().requires_grad_()))
def test_requires_grad_changes(y: Tensor) -> Any:
    return (y * 2).sum(), y.requires_grad, (y * 2).requires_grad


@program((Y,))
def test_dtype_conversions(y: Tensor) -> Any:
    return (
        (
            y.int(),
            y.long(),
            y.half(),
            y.double(),
            y.bool(),
            y.to(torch.bfloat16),
            y.type(torch.int8),
        ),
        (
            y.to(y),
            y.to("cpu"),
            y.to(dtype=torch.float64, copy=True),
            y.type_as(y.int()),
            y.cpu(),
            y.float(),
        ),
        (
            y.to(torch.float32) is y,
            torch.result_type(y, 1),
            torch.finfo(y.dtype).min,
            y.element_size(),
        ),
        (y + 1j).real,
    )


@program((Y,))
def test_reductions(y: Tensor) -> Any:
    values, at = y.max(dim=1)
    top = y.topk(2, dim=1)
    return (
        (y.sum(), y.mean(0), y.std(), y.var(1, unbiased=False), y.prod(), y.norm(), y.argmax(1)),
        (
            values,
            at,
            top.values,
            top.indices,
            y.min(1).indices,
            y.median(),
            y.cumsum(0),
            y.logsumexp(1),
        ),
        (y.any(), y.all(1), torch.amax(y, (0, 1)), y.sort(descending=True), torch.aminmax(y)),
    )


@program((Y,))
def test_functional(y: Tensor) -> Any:
    return (
        (
            F.relu(y),
            F.gelu(y),
            F.softmax(y, dim=-1),
            F.log_softmax(y, 1),
            F.silu(y),
            F.layer_norm(y, (3,)),
        ),
        (
            F.pad(y, (1, 1)),
            F.one_hot(y.long(), 6),
            F.normalize(y),
            F.cosine_similarity(y, y),
            F.glu(y[:, :2]),
        ),
        F.scaled_dot_product_attention(y[None], y[None], y[None]),
        F.cross_entropy(y, torch.tensor([0, 2])),
    )


@program((Y,))
def test_einsum_and_matrix_products(y: Tensor) -> Any:
    return (
        torch.einsum("ij,kj->ik", y, y),
        torch.einsum("ij->j", [y]),
        torch.bmm(y[None], y.t()[None]),
        torch.addmm(torch.zeros(2, 2), y, y.t()),
        torch.outer(y[0], y[1]),
        torch.linalg.norm(y),
        torch.matmul(y, y[0]),
    )


@program((Y,))
def test_scatter_gather_where(y: Tensor) -> Any:
    at = torch.tensor([[0, 2], [1, 1]])
    return (
        y.gather(1, at),
        torch.zeros(2, 3).scatter_(1, at, 1.0),
        torch.zeros(2, 3).index_add_(0, torch.tensor([0, 0]), y),
        torch.where(y > 2, y, torch.zeros(())),
        y.index_select(1, torch.tensor([2, 0])),
        torch.zeros(3).scatter_add(0, torch.tensor([0, 2]), torch.ones(2)),
        y.masked_fill(y > 3, -1),
        torch.tril(torch.ones(3, 3)),
    )


@program((Y,))
def test_tensor_attributes(y: Tensor) -> Any:
    return (
        (y.T, y.mT, y.shape, y.dtype, y.device, y.layout, y.ndim, y.is_leaf, y.grad, y.is_cuda),
        (y.data, y.nbytes, y.itemsize, y.names, y.grad_fn, y.real, y.is_sparse, y.device.type),
        (y.size(), y.stride(0), y.get_device(), y.is_complex(), y.storage_offset(), y.type()),
    )


@program((LEAF,), breaks=None)
def test_gradient_related(x: Tensor) -> Any:
    y = x * 2
    return y.detach(), y.clone(), y.requires_grad, x.is_leaf, y.is_leaf, y.detach().requires_grad_()


@program((Y.clone().requires_grad_(), Y.clone().requires_grad_()))
def test_gradients_flow_through_mutation(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    y += w
    y[0] = w[1]
    y.mul_(3)
    return y, y.sum()


@program((LEAF,))
def test_inplace_on_leaf_under_no_grad(x: Tensor) -> Any:
    with torch.no_grad():
        x.mul_(0.5)
        x -= 0.1
    return x * 2


@program((Y,))
def test_torch_size_is_a_tuple(y: Tensor) -> Any:
    s = y.shape
    return (
        s + (1,),
        s[1:],
        tuple(s),
        list(s),
        s.numel(),
        s == (2, 3),
        torch.Size([1, 2]),
        isinstance(s, tuple),
    )


@program((Y,))
def test_tensor_len_contains_iter(y: Tensor) -> Any:
    a, b = y
    return len(y), [r.sum() for r in y], a + b, next(zip(y, y, strict=True))[0], reversed(y)


@program((Y, Y.clone()))
def test_tensor_identity_and_id(x: Tensor, y: Tensor) -> Any:
    same = x
    seen = {id(x): "x", id(y): "y"}
    return same is x, x is y, seen[id(same)], x in {x: 1}, hash(x) == hash(same)


@program(call(Y, Y), call(Y.clone(), Y.clone()))
def test_aliased_arguments_sometimes(x: Tensor, y: Tensor) -> Any:
    x = x + 1
    return x + y, x is y


@program((Y.clone(),) * 2)
def test_same_tensor_twice_mutated(x: Tensor, y: Tensor) -> Any:
    x.add_(1)
    return y * 2


@program((X.clone(),))
def test_overlapping_views_of_arguments(x: Tensor) -> Any:
    a, b = x[0], x[:, 0]
    a.add_(100)
    return b * 1


@program((Y,), breaks=None)
def test_tensor_subclass_made_inside(y: Tensor) -> Any:
    class Tagged(Tensor):
        pass

    t = y.as_subclass(Tagged)
    return t + 1, type(t + 1).__name__


@program((Y.to_sparse(),), breaks=None)
def test_sparse_argument(y: Tensor) -> Any:
    return y.to_dense() + 1, (y * 2).coalesce().values()


@program((torch.tensor([1 + 2j, 3 - 1j]).conj(), torch.tensor(2)))
def test_complex_and_scalar_tensors(z: Tensor, n: Tensor) -> Any:
    return z * 2, z.abs(), z.is_conj(), torch.view_as_real(z.resolve_conj()), n + 1, n.dim(), n * z


@program((torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),))
def test_channels_last(x: Tensor) -> Any:
    return (
        x + 1,
        x.contiguous(),
        x.permute(0, 2, 3, 1),
        x.is_contiguous(memory_format=torch.channels_last),
    )


@program((Y, torch.tensor([], dtype=torch.float32)))
def test_empty_tensors(y: Tensor, nothing: Tensor) -> Any:
    return (
        torch.cat([y.view(-1), nothing]),
        nothing.sum(),
        y[5:],
        y[:, :0].shape,
        nothing.numel() == 0,
    )


@program((Y,), breaks=None)
def test_custom_autograd_function(y: Tensor) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return g * x

    return Double.apply(y)


class Scale(torch.autograd.Function):
    """A custom function at module level, with gradients unlike autograd's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, by: float) -> Tensor:
        ctx.by = by
        return x * by

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return g * ctx.by * 10, None


@program((LEAF, 3.0), breaks=None)
def test_custom_autograd_function_with_gradient(x: Tensor, by: float) -> Any:
    return Scale.apply(x, by).sum()


@program((Y,), breaks=None)
def test_vmap_and_grad_transforms(y: Tensor) -> Any:
    return torch.vmap(lambda r: r.sum())(y), torch.func.grad(lambda t: (t**2).sum())(y)


@program((Y,), breaks=None)
def test_activation_checkpoint(y: Tensor) -> Any:
    w = torch.ones(3, requires_grad=True)
    return torch.utils.checkpoint.checkpoint(lambda t: (t * w).sin(), y, use_reentrant=False)


@program((np.arange(6.0).reshape(2, 3),), breaks=None)
def test_numpy_arguments(a: Any) -> Any:
    b = a * 2 + np.ones(3)
    return b.sum(axis=0), np.dot(b, b.T), b.dtype, b.shape, a[0], np.float64(3) * 2


@program((torch.compiler.is_compiling,), breaks=None)
def test_callable_argument(f: Any) -> Any:
    return torch.ones(2) + 1, callable(f)

"""Transforms of functions (``torch.vmap``, ``torch.func``) inside a captured function."""

from typing import Any

import torch
from torch import Tensor, func
from torch.utils.checkpoint import checkpoint

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(12.0).reshape(3, 4) - 5
V = torch.linspace(-1, 1, 4)
W = torch.linspace(-1, 1, 4).requires_grad_()
LAYER = torch.nn.Linear(4, 1)
SCALE = torch.tensor([2.0, 3.0, 4.0, 5.0])


def row(x: Tensor, w: Tensor) -> Tensor:
    return (x * w * SCALE).sum() + x.max()


@program((X, W))
def test_over_the_first_dimension(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(row, in_dims=(0, None))(x, w), x + 1


@program((X, torch.ones(4).requires_grad_()))
def test_dims_and_structures(x: Tensor, w: Tensor) -> Any:
    def f(pair: Any, z: Tensor) -> Any:
        a, (b,) = pair
        return a + b, [z.sum()]

    left = torch.vmap(f, in_dims=((1, [None]), 0), out_dims=(1, [0]))((x, [w[:3]]), x.T)
    right = torch.vmap(lambda t: t.sin(), in_dims=-1, out_dims=-1)(x)
    return left, right


@program((X,))
def test_inside_each_other(x: Tensor) -> Any:
    def outer(a: Tensor) -> Tensor:
        return torch.vmap(lambda b: a * b)(x)

    return torch.vmap(outer)(x), torch.vmap(torch.vmap(torch.sin))(x)


@program((X,))
def test_what_eager_refuses(x: Tensor) -> Any:
    try:
        return torch.vmap(lambda a, b: a + b)(x, x.T)
    except ValueError as error:
        return str(error)


@program((X,))
def test_in_chunks(x: Tensor) -> Any:
    return torch.vmap(lambda t: t.sin(), chunk_size=2)(x), torch.vmap(torch.cos, chunk_size=9)(x)


@program((X,))
def test_in_place_on_a_row(x: Tensor) -> Any:
    y = x.clone()
    torch.vmap(lambda row: row.mul_(2))(y)
    return y, torch.vmap(lambda row: row.add_(1))(x)


@program((X,), breaks=None)
def test_break_inside(x: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        print("inside")
        return a * 2

    return torch.vmap(f)(x) + 1


@scenario(breaks=None)
def test_level_is_left_when_the_graph_raises() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        return torch.vmap(lambda row: row[at])(x)

    def after(i: int, result: Any) -> Any:
        return torch._C._functorch.maybe_current_level()

    return Scenario(f, [call(X, torch.tensor([0])), call(X, torch.tensor([9]))], after=after)


@program((X, V), (X, W))
def test_gradients(x: Tensor, w: Tensor) -> Any:
    def loss(t: Tensor) -> Tensor:
        return (t.sin() * w).sum()

    return func.grad(loss)(x * 2) + 1, func.grad_and_value(loss)(x)


@program((X, V))
def test_gradients_with_more(x: Tensor, w: Tensor) -> Any:
    def loss(params: Any, t: Tensor, *, scale: float) -> Any:
        out = t @ params["w"] * scale + params["b"]
        return out.pow(2).mean(), {"out": out}

    params = {"w": w, "b": torch.ones(())}
    return func.grad(loss, has_aux=True)(params, x, scale=0.5), func.grad(loss, 1, True)(
        params, x, scale=2.0
    )


@program((X, V), (X.abs(), V))
def test_gradients_of_each_row(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(func.grad(row, (0, 1)), in_dims=(0, None))(x, w)


@program((X,))
def test_gradients_of_gradients(x: Tensor) -> Any:
    cube = func.grad(func.grad(lambda t: t**3))
    return cube(x.sum()), torch.vmap(torch.vmap(cube))(x)


@program((X, V))
def test_no_grad_inside_and_outside(x: Tensor, w: Tensor) -> Any:
    def f(t: Tensor) -> Tensor:
        with torch.no_grad():
            c = t**2
        return (t * w - c).sum()

    with torch.no_grad():
        first = func.grad(f)(x)
    return first, func.grad(f)(x), torch.is_grad_enabled()


@program((X[0], V))
def test_jacobians(x: Tensor, w: Tensor) -> Any:
    def f(t: Tensor) -> Tensor:
        return t.sin() * w + t.sum()

    return func.jacrev(f)(x), func.jacfwd(f)(x), func.hessian(lambda t: f(t).prod())(x)


@program((X, V))
def test_products_with_vectors(x: Tensor, w: Tensor) -> Any:
    out, pull = func.vjp(lambda t, v: (t * v).sin(), x, w)
    return out, pull(torch.ones_like(out)), func.jvp(torch.sin, (x,), (out,))


@program((X, V), breaks=None)
def test_vjp_over_a_break(x: Tensor, w: Tensor) -> Any:
    out, pull = func.vjp(lambda t: t * w, x)
    print("between")
    return pull(out)


@program((X,), breaks=None)
def test_a_tensor_of_the_transform_escapes(x: Tensor) -> Any:
    kept = []

    def f(t: Tensor) -> Tensor:
        kept.append(t * 3)
        return (t * t).sum()

    gradient = func.grad(f)(x)
    return gradient, kept[0].shape, kept[0] + 0


@program((X, V))
def test_functional_call(x: Tensor, w: Tensor) -> Any:
    return func.functional_call(LAYER, {"weight": w[None]}, (x,)), LAYER(x)


@program((X, V))
def test_gradients_of_the_parameters_for_each_sample(x: Tensor, w: Tensor) -> Any:
    params = {name: p.detach() for name, p in LAYER.named_parameters()}

    def loss(params: Any, sample: Tensor) -> Tensor:
        return func.functional_call(LAYER, params, (sample[None],)).pow(2).sum()

    return torch.vmap(func.grad(loss), in_dims=(None, 0))(params, x)


@program((X,), breaks=None)
def test_hooks_of_saved_tensors_are_refused(x: Tensor) -> Any:
    def f(t: Tensor) -> Tensor:
        with torch.autograd.graph.save_on_cpu():
            return t.sin().sum()

    try:
        return func.grad(f)(x)
    except RuntimeError as error:
        return str(error)


@program((X,))
def test_hooks_are_forbidden(x: Tensor) -> Any:
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = x + 1
    return y


@program((X,), breaks=1)
def test_cond_is_one_break(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)) * 2


@program((X.clone().requires_grad_(),), breaks=1)
def test_checkpoint_is_one_break(x: Tensor) -> Any:
    return checkpoint(torch.sin, x * 2, use_reentrant=False) + 1


@program((torch.ones(2, 3).requires_grad_(),))
def test_crossing_a_level_changes_nothing_outside(x: Tensor) -> Any:
    y = x * 1
    try:
        z = torch.vmap(lambda a: (a * 2 + y[0]).sum())(y)
    except ValueError:
        return None
    return z, torch.func.jvp(lambda a: a * 2, (y,), (y,))


class Odd(torch.autograd.Function):
    """A square whose gradient is told to be another, under each transform by a rule of its own."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 3 * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return Odd.apply(x) + 1, in_dims[0]


@program((X, V), (X[1:], W), breaks=None)
def test_gradients_of_the_programs_own(x: Tensor, v: Tensor) -> Any:
    apply: Any = Odd.apply
    once = func.grad(lambda a: apply(a).sum())(v)
    return once, torch.vmap(apply)(x), torch.vmap(func.grad(lambda a: apply(a).sum()))(x), apply(v)


@program((V,), (V[1:],))
def test_a_lookup_in_a_level_behind_the_flag_that_it_sets(v: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        b = a.clone()
        b[b > 0.5] = 3
        return (b * a).sum()

    return func.grad(f)(v)


@program((X, torch.tensor([1])), (X, torch.tensor([9])), (X, torch.tensor([0])), breaks=None)
def test_forward_mode_is_left_by_an_error(x: Tensor, at: Tensor) -> Any:
    return func.jvp(lambda a: a.index_select(1, at), (x,), (x,))


@program((X.clone().requires_grad_(),), breaks=None)
def test_gradients_asked_for_by_keywords(x: Tensor) -> Any:
    return torch.autograd.grad(outputs=(x**2).sum(), inputs=x)[0] + 1

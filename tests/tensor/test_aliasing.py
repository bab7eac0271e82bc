"""Arguments that share memory, that are changed in place, and whose gradients are wanted or not.

Each row is called several times with arguments that begin to be something else.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.tensor.rows import OURS, Row, Table

row = Table()


def line(n: int = 6) -> Tensor:
    return torch.arange(float(n)) + 1


def leaf(n: int = 6) -> Tensor:
    return line(n).requires_grad_()


def apart(n: int = 6) -> tuple[Tensor, Tensor]:
    return line(n), line(n) * 3


# -- inputs that begin to overlap -----------------------------------------------------------------
def pairs() -> list[tuple[Tensor, Tensor]]:
    """Two tensors: apart, one object, one memory, part of each other, side by side, apart."""
    one = line(4)
    base = line(8)
    flipped = line(4)
    side = line(8)
    return [
        apart(4),
        (one, one),
        (base[:4], base[:4]),
        (base[:4], base[2:6]),
        (base[2:6], base[:4]),
        (flipped, flipped.detach()),
        (side[:4], side[4:]),
        (side[::2], side[1::2]),
        apart(4),
    ]


@row(pairs)
def read_only(x: Tensor, y: Tensor) -> Any:
    return x + y, x is y


@row(pairs)
def first_is_changed(x: Tensor, y: Tensor) -> Any:
    x.add_(1)
    return x * 2 + y, y * 1


@row(pairs, "overlap")
def both_are_changed(x: Tensor, y: Tensor) -> Any:
    x.mul_(2)
    y.add_(x)
    x.sub_(1)
    return x - y


@row(pairs)
def results_are_the_arguments(x: Tensor, y: Tensor) -> Any:
    y.add_(1)
    return x, y, x.view(2, 2), y[1:]


@row(pairs, "overlap")
def views_are_changed(x: Tensor, y: Tensor) -> Any:
    x[:2].mul_(3)
    y.view(2, 2)[1].add_(x[0])
    return x.sum(), y.sum()


@row(pairs)
def one_is_copied_to_the_other(x: Tensor, y: Tensor) -> Any:
    x.copy_(y * 2)
    return y + 1


@row(pairs, "overlap")
def one_is_copied_directly(x: Tensor, y: Tensor) -> Any:
    x.copy_(y)
    return y + 1


@row(pairs, "overlap")
def result_goes_to_an_argument(x: Tensor, y: Tensor) -> Any:
    torch.add(x, 1, out=y)
    return x * y


@row(lambda: [(list(pair), {"a": pair[0]}) for pair in pairs()])
def in_containers(both: list[Tensor], named: dict[str, Tensor]) -> Any:
    both[1] += 1
    return named["a"] * both[0]


@row(
    lambda: [(x, y, line(4)) for x, y in pairs()] + [(line(4), x, y) for x, y in pairs()], "overlap"
)
def three(x: Tensor, y: Tensor, z: Tensor) -> Any:
    y.add_(x)
    z.mul_(y)
    return x + y + z


@row(lambda: [(x.reshape(2, 2), x.reshape(2, 2).t()) for x in (line(4), line(4))])
def with_its_transpose(x: Tensor, y: Tensor) -> Any:
    x[0].add_(10)
    return y * 1, y.sum(0)


def other_dtypes() -> list[tuple[Tensor, Tensor]]:
    x, y = line(4), torch.arange(4, dtype=torch.int32)
    return [(x, y), (x, x.view(torch.int32)), (x, x.view(torch.int32).flip(0))]


@row(other_dtypes)
def with_its_bits(x: Tensor, y: Tensor) -> Any:
    x.mul_(-1)
    return y + 1


@row(lambda: [(x, x.numpy()) for x in (line(), line())] + [(line(), line().numpy())])
def with_its_array(x: Tensor, a: Any) -> Any:
    x.add_(1)
    return a * 2


@row(lambda: [(x, x.numpy()) for x in (line(), line())] + [(line(), line().numpy())])
def through_its_array(x: Tensor, a: Any) -> Any:
    a += 1
    return x * 2


@row(lambda: [(torch.zeros(0), torch.zeros(0)), (torch.zeros(2), torch.zeros(2)[2:])])
def empty(x: Tensor, y: Tensor) -> Any:
    x.add_(1)
    return x, y * 2


def scalars() -> list[tuple[Tensor, Tensor]]:
    x = line()
    return [(torch.tensor(1.0), torch.tensor(2.0)), (x[0], x[0]), (x[0], x[1])]


@row(scalars)
def without_dimensions(x: Tensor, y: Tensor) -> Any:
    x += 2
    return y * 5


# -- aliases that are no arguments ----------------------------------------------------------------
WORLD: dict[str, Any] = {}


def of_the_world() -> list[tuple[Tensor]]:
    WORLD["base"] = base = line(8)
    WORLD["all"] = [base[4:]]
    return [(base[:4],), (line(4),), (base[2:6],), (base[4:],)]


@row(of_the_world)
def with_a_global(x: Tensor) -> Any:
    x.add_(1)
    return WORLD["base"] * 2, WORLD["all"][0].mul_(3)


class Counter(torch.nn.Module):
    """A buffer, a view of it, and two parameters that may be one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("first", self.count[:1])
        self.a = torch.nn.Linear(3, 3)
        self.b = torch.nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        self.count += 1
        return self.b(torch.relu(self.a(x))) * self.first, self.a.weight is self.b.weight


def counted() -> list[tuple[Any, ...]]:
    torch.manual_seed(0)
    model, other = Counter(), Counter()
    x = torch.ones(2, 3)
    tied = Counter()
    tied.a.weight = tied.b.weight
    same = Counter()
    same.a.weight.data = same.b.weight.data
    apart = Counter()
    apart.first = torch.zeros(1)
    return [(m, x) for m in (model, model, other, tied, same, apart, model)]


@row(counted)
def buffers_and_tied_parameters(model: Any, x: Tensor) -> Any:
    return model(x)


@row(lambda: [(m, m.count) for m in (Counter(), Counter())] + [(Counter(), torch.ones(3))])
def a_buffer_that_is_an_argument(model: Any, x: Tensor) -> Any:
    model.count += 1
    return x * 2


# -- parameters that change -----------------------------------------------------------------------
def weights() -> list[tuple[Any, ...]]:
    torch.manual_seed(0)
    p = torch.nn.Parameter(line(4))
    return [(p, p.data), (p, line(4)), (p, p.detach()), (torch.nn.Parameter(line(4)), line(4))]


@row(weights)
def parameter_under_no_grad(p: Any, x: Tensor) -> Any:
    with torch.no_grad():
        p.add_(1)
        p.mul_(2)
    return p * x


@row(weights)
def parameter_through_data(p: Any, x: Tensor) -> Any:
    p.data.add_(1)
    return p * x


@row(weights)
def alias_of_a_parameter(p: Any, x: Tensor) -> Any:
    x.add_(1)
    return (p * p).sum()


@row(weights, "fake-tensor-error")
def parameter_in_place(p: Any, x: Tensor) -> Any:
    y = x * 2
    p.add_(1)
    return y


def exchanged() -> list[tuple[Any, ...]]:
    """One parameter, whose memory becomes another after each call."""
    p = torch.nn.Parameter(line(4))
    return [(p, x) for x in (line(4), line(4).flip(0), line(8)[::2], line(4))]


@row(exchanged, "tensor-field-write")
def data_is_exchanged(p: Any, x: Tensor) -> Any:
    y = p * x
    p.data = x * 5
    return y, p + 1


@row(exchanged, "tensor-storage")
def memory_is_set(p: Any, x: Tensor) -> Any:
    y = p * x
    with torch.no_grad():
        p.set_(x * 5)
    return y, p + 1


def cut() -> list[tuple[Tensor]]:
    return [(line(4),), (line(4),), (line(6),)]


@row(cut, "tensor-storage")
def resized(x: Tensor) -> Any:
    y = x * 2
    x.resize_(2)
    return y, x.shape, x + 1


@row(cut)
def shapes_in_place(x: Tensor) -> Any:
    x.unsqueeze_(0)
    x.t_()
    return x, x.shape, x * 2


# -- gradients and modes --------------------------------------------------------------------------
ALTERNATING = [
    torch.no_grad,
    torch.enable_grad,
    torch.inference_mode,
    torch.enable_grad,
    torch.no_grad,
    torch.inference_mode,
]


# AOTAutograd fails while compiling, where eager fails in the backward pass.
@row(lambda: [(leaf(), line()) for _ in ALTERNATING], around=ALTERNATING, backends=OURS)
def under_modes(x: Tensor, y: Tensor) -> Any:
    z = x * y
    y.add_(1)
    return z, z.requires_grad, torch.is_grad_enabled(), y


# Views that AOTAutograd gives in inference mode want no gradient, as eager's do.
@row(lambda: [(leaf(), line()) for _ in ALTERNATING], around=ALTERNATING, backends=OURS)
def views_under_modes(x: Tensor, y: Tensor) -> Any:
    return x[1:], y.view(2, 3), x.detach(), x


@row(lambda: [(leaf(), line()) for _ in ALTERNATING], around=ALTERNATING)
def in_place_under_modes(x: Tensor, y: Tensor) -> Any:
    z = x * 1
    z.mul_(y)
    z[0] = 7
    return z


def inference(n: int = 6) -> Tensor:
    with torch.inference_mode():
        return line(n)


@row(lambda: [(leaf(), line()), (leaf(), inference()), (line(), inference()), (leaf(), line())])
def inference_tensors(x: Tensor, y: Tensor) -> Any:
    return x + 1, y * 2


@row(lambda: [(leaf(), line()), (leaf(), inference()), (line(), inference()), (leaf(), line())])
def inference_tensors_saved(x: Tensor, y: Tensor) -> Any:
    return x * y


@row(lambda: [(line(), line()), (line(), inference()), (inference(), line())])
def inference_tensors_changed(x: Tensor, y: Tensor) -> Any:
    y.add_(x)
    return y * 2


@row(lambda: [(inference(),), (line(),), (inference(),)])
def views_of_inference_tensors(x: Tensor) -> Any:
    return x[1:], x.view(2, 3), x.detach()


def toggled() -> list[tuple[Tensor, Tensor]]:
    return [(x, y) for x in (line(), leaf()) for y in (leaf(), line())] * 2


@row(toggled)
def gradients_of_some(x: Tensor, y: Tensor) -> Any:
    z = x * y + x.sin()
    return z, z.requires_grad, z.is_leaf


def inner() -> list[tuple[Tensor, Tensor]]:
    x = leaf()
    return [(leaf() * 2, line()), (leaf(), line()), (x * 1, x * 3), (leaf() * 2, leaf() * 2)]


@row(inner)
def no_leaves(x: Tensor, y: Tensor) -> Any:
    return x * y


@row(inner)
def no_leaves_changed(x: Tensor, y: Tensor) -> Any:
    x.mul_(y)
    return x.sin()


def grown() -> list[tuple[Tensor, Tensor]]:
    x, y = line(4), line(4)
    return [(line(4), leaf(4)), (x[:4], leaf(4)), (y, leaf(4)), (line(4), line(4))]


@row(grown)
def gradient_comes_in_place(x: Tensor, w: Tensor) -> Any:
    x.mul_(w)
    return x * 1, x.requires_grad


def viewed() -> list[tuple[Tensor, Tensor, Tensor]]:
    x, y, z = line(4), line(4), line(4)
    v = leaf(4) * 1
    return [
        (x, x.view(2, 2), leaf(4)),
        (y, line(4).view(2, 2), leaf(4)),
        (z, z.detach().view(2, 2), leaf(4)),
        (v, v.view(2, 2), leaf(4)),
    ]


@row(viewed, "overlap")
def gradient_comes_to_a_view(x: Tensor, y: Tensor, w: Tensor) -> Any:
    x.mul_(w)
    return y * 1, y.requires_grad


@row(viewed, "overlap")
def gradient_comes_to_a_base(x: Tensor, y: Tensor, w: Tensor) -> Any:
    y.mul_(w.view(2, 2))
    return x * 1, x.requires_grad, x.is_leaf


def refused_views() -> list[tuple[Tensor]]:
    parts = (leaf() * 1).unbind(0)
    with torch.no_grad():
        quiet = (leaf() * 1)[0:1]
    return [(line(1),), ((leaf() * 1)[0:1],), (parts[0],), (quiet,), (leaf()[0:1],), (line(1),)]


@row(refused_views, "fake-tensor-error")
def views_that_refuse(x: Tensor) -> Any:
    y = x * 2
    x.add_(1)
    return y


def saved() -> list[tuple[Tensor, Tensor]]:
    x, y, z = leaf(), leaf(), leaf()
    return [(x, line()), (y, y.detach()), (z, z.data), (leaf(), line())]


@row(saved)
def saved_and_then_changed(x: Tensor, y: Tensor) -> Any:
    z = (x * x).sum()
    y.add_(1)
    return z


def hooked() -> list[tuple[Tensor]]:
    quiet, loud = leaf(), leaf()
    loud.register_hook(lambda g: g * 10)
    kept = leaf() * 2
    kept.retain_grad()
    late = leaf()
    late.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(3))
    return [(quiet,), (loud,), (kept,), (late,), (leaf(),)]


@row(hooked)
def with_hooks(x: Tensor) -> Any:
    return (x * x).sum()


def with_gradients() -> list[tuple[Tensor]]:
    x, y = leaf(), leaf()
    x.grad = line()
    return [(x,), (y,), (x,)]


@row(with_gradients)
def gradients_that_are_there(x: Tensor) -> Any:
    return x * 2, None if x.grad is None else x.grad + 1


@row(lambda: [(leaf(),), (line(),), (leaf(),)], "tensor-field-write")
def flag_is_set(x: Tensor) -> Any:
    y = x * 2
    x.requires_grad_()
    return y, x * 3


@row(lambda: [(leaf(),), (line(),), (leaf(),)], "tensor-field-write")
def flag_is_taken(x: Tensor) -> Any:
    y = x * 2
    x.requires_grad_(False)
    return y, x * 3


@row(lambda: [(leaf() * 1,), (leaf() * 1,)])
def detached_in_place(x: Tensor) -> Any:
    y = x * 2
    y.detach_()
    return y * 2, y.requires_grad


def after_an_error() -> list[tuple[Tensor, Tensor]]:
    return [(line(), torch.tensor(0)), (line(), torch.tensor(9)), (line(), torch.tensor(1))]


# A graph that is one C function changes its arguments at its end.
@row(after_an_error, backends=("eager",))
def changed_before_an_error(x: Tensor, at: Tensor) -> Any:
    x.add_(1)
    return x.index_select(0, at)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("one", "backend"), row.params(), ids=lambda v: v.name if isinstance(v, Row) else v
)
def test_row(one: Row, backend: str) -> None:
    one.check(backend)

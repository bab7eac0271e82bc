"""What is foretold of operations on symbolic sizes is what eager gives, for any sizes."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from dynacap.backends.fakes.memo import Kept, parts
from dynacap.backends.fakes.meta import FOR_REAL, KNOWN, POINTWISE, predicted
from dynacap.backends.fakes.symbolic import NOT_UNIFORM
from dynacap.backends.fakes.world import FakeWorld

pytestmark = pytest.mark.torch
Row = Callable[[Tensor, Tensor], Any]
SIZES = ((4, 6), (6, 10))  # what is foretold of the first is compared for both


def layouts(a: int, b: int) -> dict[str, Tensor]:
    def values(*shape: int) -> Tensor:
        return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)

    return {
        "plain": values(a, b),
        "transposed": values(b, a).t(),
        "every other": values(2 * a, b)[::2],
        "repeated rows": values(1, b).expand(a, b),
        "a column": values(a, 1),
        "a vector": values(a),
        "three": values(2, a, b),
        "three, turned": values(b, 2, a).permute(1, 2, 0),
        "four": values(2, 3, a, b),
        "channels last": values(2, 3, a, b).to(memory_format=torch.channels_last),
        "a parameter": values(a, b).requires_grad_(),
    }


def one(*more: Any, **keywords: Any) -> Row:
    return lambda x, y: ((x, *more), keywords)


def both(x: Tensor, y: Tensor) -> Any:
    return (x, y), {}


ROWS: dict[str, list[Row]] = {name: [one(), one(2.5), both] for name in POINTWISE | FOR_REAL} | {
    "where": [lambda x, y: ((x > 2, x, y), {})],
    "invert": [lambda x, y: ((x > 2,), {})],
    "bitwise_not": [lambda x, y: ((x > 2,), {})],
    **{
        name: [lambda x, y: ((x > 2, y > 3), {})]
        for name in "and and_ bitwise_and bitwise_or bitwise_xor or or_ xor".split()
    },
    "addcmul": [lambda x, y: ((x, x, y), {})],
    "batch_norm": [lambda x, y: ((x, torch.zeros(3), torch.ones(3)), {})],
    "clamp": [one(0, 1), one(min=0.5), both],
    "lerp": [lambda x, y: ((x, y, 0.5), {})],
    "masked_fill": [lambda x, y: ((x, y > 2, 0), {})],
    "expand": [lambda x, y: ((x[..., None], *x.shape, 3), {}), lambda x, y: ((x, 5, *x.shape), {})],
    "expand_as": [lambda x, y: ((x[:1], x), {}), both],
    "flatten": [one(), one(1), one(0, 1)],
    "movedim": [one(0, 1), one(0, -1)],
    "permute": [one(1, 0), one((1, 0)), one(2, 0, 1), one((0, 2, 3, 1))],
    "reshape": [
        one(-1),
        lambda x, y: ((x, (*x.shape[:-2], -1)), {}),
        lambda x, y: ((x, x.shape[-1], -1), {}),
        lambda x, y: ((x, *x.shape, 1), {}),
        lambda x, y: ((x, x.shape[0] * x.shape[1], -1), {}),
    ],
    "view": [one(-1), lambda x, y: ((x, -1, *x.shape[1:], 1), {}), one(torch.int32)],
    "view_as": [both],
    "squeeze": [one(), one(0), one(-1)],
    "swapaxes": [one(0, 1), one(-1, 0)],
    "transpose": [one(0, 1), one(-1, -2)],
    "unflatten": [one(-1, (-1, 2)), lambda x, y: ((x, -2, (1, x.shape[-2])), {})],
    "unsqueeze": [one(0), one(-1), one(1)],
    "t": [one()],
    "addmm": [lambda x, y: ((y[0], x, x.mT), {})],
    "baddbmm": [lambda x, y: ((x[:, :, :1], x, x.mT), {})],
    "bmm": [lambda x, y: ((x, y.mT), {}), lambda x, y: ((x.mT, y), {})],
    "mm": [lambda x, y: ((x, y.mT), {}), lambda x, y: ((x.mT, y), {})],
    "matmul": [lambda x, y: ((x, y.mT), {}), lambda x, y: ((x.mT, y), {})],
    "linear": [both],
    "amax": [one(), one(0), one((0, 1), True)],
    "amin": [one(), one(-1, keepdim=True)],
    "argmax": [one(), one(1), one(0, True)],
    "stack": [lambda x, y: (([x, y],), {}), lambda x, y: (((x, y, x), 1), {})],
    "cumsum": [one(0), one(-1, dtype=torch.float64)],
    "embedding": [lambda x, y: ((y.long() % 2, x), {})],
    "layer_norm": [lambda x, y: ((x, x.shape[-1:]), {})],
    "softmax": [one(0), one(-1), one(1, dtype=torch.float64)],
    "log_softmax": [one(0), one(dim=-1)],
    "mean": [one(), one(0), one((0, 1), True)],
    "sum": [one(), one(0), one((0, 1), True), one(-1, dtype=torch.float64)],
    "var": [one(), one(0), one((0, 1), keepdim=True)],
    "T": [],
    "mT": [],
}
# Which these layouts never show, or of which something is asked that is for torch to answer.
SELDOM = frozenset("batch_norm float floordiv floor_divide layer_norm".split())

_FEW = ("plain", "transposed", "a parameter")


def test_each_has_rows() -> None:
    assert ROWS.keys() == (KNOWN | FOR_REAL) - NOT_UNIFORM


class Symbolic:
    """Fakes with a symbol for each size above 1, and the symbols' values."""

    def __init__(self) -> None:
        self.env = ShapeEnv(duck_shape=False)
        self.world = FakeWorld()
        self.world.use_symbols(self.env)

    def of(self, real: Tensor) -> Tensor:
        context: Any = StatelessSymbolicContext(
            dynamic_sizes=[DimDynamic.DYNAMIC if n > 3 else DimDynamic.STATIC for n in real.shape],
            constraint_sizes=[None] * real.dim(),
        )
        return self.world.of_symbolic(real, self.env, ConstantSource("x"), context)

    def arguments(self, row: Row, x: Tensor) -> Any:
        return self.world.run(row, (x, x), {})

    def number(self, size: Any) -> int:
        expression = size.node.expr if isinstance(size, torch.SymInt) else None
        return size if expression is None else int(expression.xreplace(self.env.backed_var_to_val))

    def numbers(self, kept: Kept) -> Any:
        return [
            look._replace(
                shape=torch.Size(map(self.number, look.shape)),
                stride=tuple(map(self.number, look.stride)),
            )
            for look in kept.looks
        ]


def called(name: str) -> list[Callable[..., Any]]:
    """The functions of this name that programs call; of pointwise ones, which are alike, one."""
    places = [
        (place, each) for place in (torch, F, operator, Tensor) for each in (name, f"__{name}__")
    ]
    found = filter(callable, (getattr(place, each, None) for place, each in places))
    return list(dict.fromkeys(found))[: 1 if name in POINTWISE else None]


def compare(function: Callable[..., Any], row: Row, layout: str) -> bool:
    """Whether anything was foretold; then it must be what comes, and nothing was asked."""
    first = Symbolic()
    x = first.of(layouts(*SIZES[0])[layout])
    try:
        args, kwargs = first.arguments(row, x)
    except (RuntimeError, IndexError):  # no operation of this layout
        return False
    asked = len(first.env.guards)
    kept = predicted(function, args, kwargs)
    assert len(first.env.guards) == asked
    if kept is None:
        return False
    for sizes in SIZES:
        real = layouts(*sizes)[layout]
        now = Symbolic()
        now.of(real)
        real_args, real_kwargs = row(real, real)
        try:
            result = function(*real_args, **real_kwargs)
        except (IndexError, NotImplementedError):  # it refuses the data, when it runs
            world = FakeWorld()
            fake = world.of(real)
            fake_args, fake_kwargs = world.run(row, (fake, fake), {})
            result = world.run(function, fake_args, fake_kwargs)
        assert kept.container in (None, type(result))
        for look, tensor in zip(now.numbers(kept), parts(result), strict=True):
            found = (tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad)
            assert found == (look.shape, look.stride, look.dtype, look.requires_grad), (row, layout)
    return True


@pytest.mark.parametrize("name", sorted(ROWS.keys() - {"T", "mT"}))
def test_what_is_foretold_comes(name: str) -> None:
    foretold = [
        compare(function, row, layout)
        for function in called(name)
        for row in ROWS[name]
        for layout in (_FEW if name in POINTWISE else layouts(*SIZES[0]))
    ]
    assert any(foretold) or name in SELDOM

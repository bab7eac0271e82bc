"""In-place operations that are known to leave all but elements do so in eager PyTorch."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from dynacap.backends.fakes.in_place import NAMES, written
from dynacap.backends.fakes.world import FakeWorld

pytestmark = pytest.mark.torch

OTHERS: dict[str, list[tuple[Any, ...]]] = {
    "none": [()],
    "one": [(2,), (0.5,), (True,)],
    "two": [(-1, 1), (0.5, None)],
}
OPERATORS = {
    f.__name__: f for f in (operator.iadd, operator.isub, operator.imul, operator.itruediv)
}


def tensors(dtype: torch.dtype) -> list[Tensor]:
    """Operands of one dtype: of one shape, of shapes that fit into it, and of one that does not."""
    whole = torch.arange(1, 25).reshape(4, 6).to(dtype)
    return [
        whole,
        whole[:1],
        whole[:, :1],
        whole[0],
        whole[0, 0],
        whole.t(),
        whole.reshape(2, 2, 6),
    ]


def rows() -> list[tuple[Any, ...]]:
    plain = [row for some in OTHERS.values() for row in some]
    found = [*plain, (torch.ones(4, 6), torch.ones(4, 6)), (torch.ones(4, 6), 0.5)]
    found += [(torch.ones(6) > 0, 2.0), (torch.ones(4, 6) > 0, 1), (torch.ones(1), torch.ones(7))]
    return [*found, *((x,) for x in tensors(torch.float32)), (torch.tensor(3),)]


def outcome(function: Callable[..., Any], first: Tensor, *others: Any) -> Any:
    """Whether the first operand is given back, as what, and how often it was changed."""
    version = first._version
    try:
        result = function(first, *others)
    except Exception as error:
        return type(error)
    return result is first, first.shape, first.dtype, first.stride(), first._version - version


@pytest.mark.parametrize("name", sorted([*NAMES, *OPERATORS]))
def test_what_is_known_is_what_eager_does(name: str) -> None:
    function = OPERATORS.get(name) or getattr(torch.Tensor, name)
    known = 0
    for dtype in (torch.float32, torch.int64, torch.bool):
        for first in tensors(dtype):
            for others in rows():
                expected = outcome(function, first.clone(), *others)
                world = FakeWorld()
                fakes = [world.of(x) if isinstance(x, Tensor) else x for x in (first, *others)]

                def run(first: Tensor, *others: Any, world: FakeWorld = world) -> Any:
                    if name in OPERATORS:
                        return written(function, (first, *others), {})
                    return written(getattr(first, name), others, {})

                with torch.no_grad():
                    found = outcome(run, *fakes)
                if found[0]:
                    known += 1
                    assert found == expected, (name, first, others)
                assert written(getattr(fakes[0], name, function), fakes[1:], {}) is None
    assert known


def test_nothing_is_known_of_what_has_more_to_it() -> None:
    world = FakeWorld()
    x = world.of(torch.ones(3))
    with torch.no_grad():
        assert written(x.add_, (world.of(torch.ones(4)),), {}) is None
        assert written(x.add_, (torch.ones(3),), {}) is None
        assert written(x.unsqueeze_, (0,), {}) is None
        assert written(x.add_, (1,), {"alpha": 2}) is x
        with torch.autocast("cpu"):
            assert written(x.add_, (1,), {}) is None


def test_a_number_that_varies_is_not_asked_which_it_is() -> None:
    world, env = FakeWorld(), ShapeEnv()
    world.use_symbols(env)
    expression = env.create_unspecified_symbol(0.5, ConstantSource("rate"), DimDynamic.DYNAMIC)
    rate = env.create_symfloatnode(expression, hint=0.5, source=ConstantSource("rate"))
    x = FakeWorld().of(torch.ones(3))
    with torch.no_grad():
        assert written(x.mul_, (rate,), {}) is None
        assert written(x.add_, (x,), {"alpha": rate}) is None
    assert not env.guards

"""What meta kernels say of a result is what the fake mode says, and what eager gives."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dynacap.backends.fakes.memo import Look, parts
from dynacap.backends.fakes.meta import FOR_REAL, KNOWN, OTHERS, POINTWISE, VIEWS, predicted
from dynacap.backends.fakes.world import FakeWorld

pytestmark = pytest.mark.torch
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)


def layouts(dtype: torch.dtype) -> dict[str, Tensor]:
    """One shape but for the last rows, laid out in many ways."""

    def values(*shape: int) -> Tensor:
        return torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)

    return {
        "plain": values(4, 6),
        "transposed": values(6, 4).t(),
        "every other": values(8, 6)[::2],
        "every other column": values(4, 12)[:, ::2],
        "repeated rows": values(1, 6).expand(4, 6),
        "repeated columns": values(4, 1).expand(4, 6),
        "a row": values(1, 6),
        "a column": values(4, 1),
        "a vector": values(6),
        "a number": values(1)[0],
        "three": values(2, 4, 6),
        "three, turned": values(6, 2, 4).permute(1, 2, 0),
        "four": values(2, 3, 4, 6),
        "channels last": values(2, 3, 4, 6).to(memory_format=torch.channels_last),
        "empty": values(0, 6),
        "of ones": values(1, 1),
    }


def called(name: str) -> list[Callable[..., Any]]:
    """The functions of this name that programs call."""
    names = (name, f"__{name}__")
    found = [getattr(place, each, None) for place in (torch, F, operator, Tensor) for each in names]
    return [function for function in dict.fromkeys(found) if callable(function)]


def one(*more: Any, **keywords: Any) -> Callable[[Tensor, Tensor], Any]:
    return lambda x, y: ((x, *more), keywords)


# What else the functions of a name are called with; pointwise functions take these all.
ROWS: dict[str, list[Callable[[Tensor, Tensor], Any]]] = (
    {
        name: [one(), one(2.5), one(True), lambda x, y: ((x, y), {}), lambda x, y: ((2, x), {})]
        for name in POINTWISE | FOR_REAL
    }
    | {
        "batch_norm": [
            lambda x, y: ((x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])), {}),
            lambda x, y: ((x, None, None, y[0], y[0], True), {}),
        ],
        "addcmul": [lambda x, y: ((x, x, y), {}), lambda x, y: ((x, y, y), {"value": 2})],
        "add": [one(2), lambda x, y: ((x, y), {}), lambda x, y: ((x, y), {"alpha": 2})],
        "clamp": [one(0, 1), one(min=0.5), lambda x, y: ((x, y), {})],
        "lerp": [lambda x, y: ((x, y, 0.5), {}), lambda x, y: ((x, y, y), {})],
        "masked_fill": [lambda x, y: ((x, y > 2, 0), {}), lambda x, y: ((x, y > 2, -1.5), {})],
        "where": [
            lambda x, y: ((x > 2, x, y), {}),
            one(1.0, 2),
            lambda x, y: ((y > 2, x, 0.5), {}),
            lambda x, y: ((x > 2,), {}),
        ],
        "chunk": [one(2), one(3, 1), one(2, dim=-1)],
        "expand": [one(4, 6), one(-1, 6), one(2, 4, 6), one((3, 2, 4, 6))],
        "expand_as": [lambda x, y: ((x, y), {})],
        "flatten": [one(), one(1), one(0, 1)],
        "getitem": [
            one(0),
            one(slice(1, 3)),
            one((..., None, 0)),
            one((slice(None), slice(0, 4, 2))),
        ],
        "movedim": [one(0, 1), one(0, -1)],
        "narrow": [one(0, 0, 1), one(-1, 1, 2)],
        "permute": [one(1, 0), one((1, 0)), one(2, 0, 1), one((0, 2, 3, 1))],
        "reshape": [one(-1), one(6, 4), one((2, 12)), one(2, -1)],
        "view": [one(-1), one(6, 4), one((2, 12)), one(4, 2, 3), one(torch.int32)],
        "view_as": [lambda x, y: ((x, y), {})],
        "select": [one(0, 0), one(-1, 2)],
        "split": [one(2), one((2, 4), -1), one(3, dim=1)],
        "squeeze": [one(), one(0), one((0, 1))],
        "swapaxes": [one(0, 1), one(-1, 0)],
        "transpose": [one(0, 1), one(-1, -2)],
        "unbind": [one(), one(1)],
        "unflatten": [one(-1, (2, 3)), one(0, (-1, 2))],
        "unsqueeze": [one(0), one(-1), one(1)],
        "T": [],  # attributes, no calls
        "mT": [],
        "t": [one()],
        "addmm": [lambda x, y: ((y, x, x.mT), {}), lambda x, y: ((x[0, 0], y.mT, x), {"beta": 2})],
        "baddbmm": [lambda x, y: ((x[:, :, :1], x, x.mT), {})],
        "bmm": [lambda x, y: ((x, y.mT), {}), lambda x, y: ((x.mT, y), {})],
        "mm": [lambda x, y: ((x, y.mT), {}), lambda x, y: ((x.mT, y), {})],
        "matmul": [
            lambda x, y: ((x, y.mT), {}),
            lambda x, y: ((x.mT, y), {}),
            lambda x, y: ((x, y), {}),
        ],
        "linear": [lambda x, y: ((x, y), {}), lambda x, y: ((x, y, y[:, 0]), {})],
        "amax": [one(), one(0), one((0, 1), True)],
        "amin": [one(), one(-1, keepdim=True)],
        "argmax": [one(), one(1), one(0, True)],
        "cat": [lambda x, y: (([x, y],), {}), lambda x, y: (((x, y), -1), {})],
        "stack": [lambda x, y: (([x, y],), {}), lambda x, y: (((x, y, x), 1), {})],
        "cumsum": [one(0), one(-1, dtype=torch.float64)],
        "embedding": [lambda x, y: ((y.long() % 2, x), {}), lambda x, y: ((x, y.long() % 2), {})],
        "layer_norm": [one((6,)), lambda x, y: ((x, (6,), y[0], y[1]), {}), one([4, 6])],
        "softmax": [one(0), one(-1), one(1, dtype=torch.float64)],
        "log_softmax": [one(0), one(dim=-1)],
        "mean": [one(), one(0), one((0, 1), True), one(-1, dtype=torch.float64)],
        "sum": [one(), one(0), one((0, 1), True), one(-1, dtype=torch.float64)],
        "var": [one(), one(0), one((0, 1), keepdim=True), one(-1, correction=0)],
    }
)


def test_each_has_rows() -> None:
    assert ROWS.keys() == KNOWN | FOR_REAL
    assert KNOWN == POINTWISE | VIEWS | OTHERS


def looks(result: Any, operands: list[Tensor]) -> list[Look]:
    storages = {x.untyped_storage()._cdata for x in operands}
    return [
        Look(
            x.shape,
            x.stride(),
            x.dtype,
            x.device,
            x.requires_grad,
            x.untyped_storage()._cdata in storages,
        )
        for x in parts(result)
    ]


def faked(world: FakeWorld, value: Any) -> Any:
    if isinstance(value, Tensor):
        return world.of(value)
    held = type(value) in (list, tuple)
    return type(value)(faked(world, item) for item in value) if held else value


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [x for item in value for x in tensors(item)] if type(value) in (list, tuple) else []


def compare(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether anything was foretold; then it must be what comes: of the fake mode, where eager
    refuses the data.
    """
    world = FakeWorld()
    fakes = faked(world, args)
    kept = predicted(function, fakes, kwargs)
    if kept is None:
        return False
    try:
        result = function(*args, **kwargs)
    except (IndexError, RuntimeError, NotImplementedError):
        result, args = world.run(function, fakes, kwargs), fakes
    assert kept.container in (None, type(result))
    assert list(kept.looks) == looks(result, tensors(args)), (function, args, kwargs)
    return True


def pairs() -> Iterator[tuple[Tensor, Tensor]]:
    """All layouts with each other as far as it takes, and a few with all dtypes."""
    floats = layouts(torch.float32)
    partners = [floats[name] for name in ("a row", "channels last")]
    gradient = floats["transposed"].clone().requires_grad_()
    for x in floats.values():
        yield from ((x, y) for y in (x, *partners, gradient))
        yield x.clone().requires_grad_(), x
    for dtype in DTYPES[1:]:
        others = layouts(dtype)
        yield from ((others[name], floats["plain"]) for name in ("plain", "transposed", "a number"))
        yield others["plain"], others["a number"]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_is_foretold_comes(name: str) -> None:
    foretold = 0
    for number, function in enumerate(called(name)):
        for row in ROWS[name]:
            for x, y in list(pairs())[:: 1 if number == 0 else 17]:
                try:
                    args, kwargs = row(x, y)
                except (IndexError, RuntimeError):  # not of so many dimensions
                    continue
                foretold += compare(function, args, kwargs)
    assert foretold or not ROWS[name]

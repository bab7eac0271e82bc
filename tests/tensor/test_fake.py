"""Fake tensors: the same metadata as the real ones, and nobody notices them."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.backends.fakes.world import FakeWorld

BASE = torch.arange(24.0).reshape(2, 3, 4)
LEAF = BASE.clone().requires_grad_()

TENSORS: dict[str, Callable[[], Tensor]] = {
    "plain": lambda: BASE,
    "scalar": lambda: torch.tensor(3),
    "empty": lambda: torch.empty(0, 4),
    "transposed": lambda: BASE.transpose(0, 2),
    "expanded": lambda: torch.ones(1, 3).expand(4, 3),
    "with an offset": lambda: BASE[1, 1:],
    "channels last": lambda: torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "half": lambda: BASE.half(),
    "bool": lambda: BASE > 3,
    "complex": lambda: torch.ones(2, dtype=torch.complex64),
    "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "negated": lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
    "leaf": lambda: LEAF,
    "parameter": lambda: torch.nn.Parameter(BASE.clone()),
    "frozen parameter": lambda: torch.nn.Parameter(BASE.clone(), requires_grad=False),
    "no leaf": lambda: LEAF * 2,
    "view of a leaf": lambda: LEAF[0],
    "view of no leaf": lambda: (LEAF * 2).view(-1),
    "view without gradient": lambda: BASE.view(-1),
    "inference": lambda: _inference(),
    "data of a leaf": lambda: LEAF.data,
    "on meta": lambda: torch.empty(2, device="meta"),
}


def _inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(3) * 2


def metadata(tensor: Tensor) -> dict[str, Any]:
    return {
        "shape": tensor.shape,
        "stride": tensor.stride(),
        "offset": tensor.storage_offset(),
        "dtype": tensor.dtype,
        "device": tensor.device,
        "layout": tensor.layout,
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is_conj": tensor.is_conj(),
        "is_neg": tensor.is_neg(),
    }


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS.keys())
def test_fake_has_the_metadata(make: Callable[[], Tensor]) -> None:
    real = make()
    assert metadata(FakeWorld().of(real)) == metadata(real)


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS.keys())
def test_operations_on_it_go_as_on_the_real_one(make: Callable[[], Tensor]) -> None:
    real = make()
    world = FakeWorld()
    fake = world.of(real)
    for operation in (torch.clone, torch.Tensor.detach, torch.Tensor.t, torch.Tensor.flatten):
        try:
            wanted = metadata(operation(real))
        except RuntimeError:
            with pytest.raises(RuntimeError):
                world.run(operation, (fake,), {})
            continue
        got = metadata(world.run(operation, (fake,), {}))
        assert {**got, "offset": 0} == {**wanted, "offset": 0}


def test_mode_is_off_between_operations() -> None:
    world = FakeWorld()
    world.run(torch.ones, (3,), {})
    assert torch._C._len_torch_dispatch_stack() == 0
    with pytest.raises(RuntimeError):
        world.run(torch.ones, (-3,), {})
    assert torch._C._len_torch_dispatch_stack() == 0
    assert type(torch.ones(3)) is Tensor


def test_warnings_come_once_and_from_the_real_run() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.softmax(x)  # warns about the missing dim

    def warned(function: Callable[[Tensor], Tensor]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(BASE[0])
        return [str(w.message) for w in caught]

    assert warned(dynacap.compile(f, backend="eager")) == warned(f) != []


def test_warnings_are_back_when_the_last_capture_ends() -> None:
    before = warnings.filters
    first, second = FakeWorld(), FakeWorld()
    first.hide()
    second.hide()
    first.show()
    assert warnings.filters is not before
    second.show()
    assert warnings.filters is before


def test_failing_fakes_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Tensor) -> Tensor:
        return x @ x

    with caplog.at_level(logging.DEBUG), pytest.raises(RuntimeError, match="multiplied"):
        dynacap.compile(f, backend="eager")(torch.ones(2, 3))
    assert not [r for r in caplog.records if r.name.startswith("torch._subclasses")]
    assert not logging.getLogger("torch._subclasses.fake_tensor").disabled


def test_hooks_on_saved_tensors_see_real_ones_only() -> None:
    packed: list[type] = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(type(tensor))
        return tensor

    def f(x: Tensor) -> Tensor:
        return (x * x).sin()

    compiled = dynacap.compile(f, backend="eager")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        compiled(LEAF)
        captured, packed = packed, []
        compiled(LEAF)
    assert captured == packed
    assert set(captured) == {Tensor}


def test_capture_draws_no_random_numbers() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(4)

    torch.manual_seed(0)
    wanted = [f(BASE) for _ in range(2)]
    torch.manual_seed(0)
    compiled = dynacap.compile(f, backend="eager")
    for result in wanted:
        torch.testing.assert_close(compiled(BASE), result)

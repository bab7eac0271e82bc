"""Tensors put together from parts, against eager."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]


def test_cat_stack_and_pad(same: Same) -> None:
    made = same(
        lambda z: [
            torch.cat([z, z * 2], 1), torch.cat([z, z + 1], -1) * 2, torch.stack([z, z.exp()]),
            torch.stack([z, z], -1), F.pad(z, (1, 2)), F.pad(z, (1, 2, 3, 0), value=1.0),
            F.pad(z, (-1, 2)), z[:, 1:3].exp(), z.chunk(2, -1)[1] * 2,
            torch.cat([z[0], z[1].sin(), z[:, 0]], 0),
        ],
        torch.randn(3, 5, 64),
    )  # fmt: skip
    assert not made.calls


def test_rotary_embedding_is_one_kernel(same: Same) -> None:
    def rotary(x: Any, cos: Any, sin: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin

    made = same(rotary, torch.randn(2, 4, 16, 64), torch.randn(16, 64), torch.randn(16, 64))
    assert len(made.kernels) == 1


def test_what_is_read_in_another_order_than_written_waits_for_it(same: Same) -> None:
    """A transposed or flipped reader cannot run in the loop that writes."""

    def several(z: Any) -> list[Any]:
        e = z.exp()
        joined = torch.cat([e, e + 1], 0)
        return [e, joined, e.t() + z, joined.flip(0) * 2, e.cumsum(0).softmax(0).t() * e.t()]

    same(several, torch.randn(48, 48))


def test_the_gradient_of_a_slice_counted_from_the_end(same: Same) -> None:
    made = same(
        lambda g: torch.ops.aten.slice_backward(g, [3, 5, 4], -2, 2, 4, 1), torch.randn(3, 2, 4)
    )
    assert not made.calls


def test_a_view_of_another_dtype_is_asked_of_torch(same: Same) -> None:
    z = torch.randn(5, 2, dtype=torch.complex64)
    same(lambda z: [torch.view_as_real(z)[..., 1], torch.view_as_real(z).exp()], z)


def test_parts_that_are_written_by_several_kernels(same: Same) -> None:
    """The first column can be written before the product, and the second not."""

    def joined(u: Any, s: Any, m: Any, a: Any) -> list[Any]:
        scaled = u * s
        column = a[:, 0] - (u * (m @ s)).squeeze(-1)
        return [scaled, torch.cat([a, column.unsqueeze(-1)], -1).tril(-1)]

    same(joined, torch.randn(1, 1), torch.randn(3, 1), torch.randn(3, 3), torch.randn(3, 1))


def test_the_gradient_of_a_slice_that_begins_before_the_start(same: Same) -> None:
    def gradient(g: Any) -> Any:
        return torch.ops.aten.slice_backward(g, [8], 0, -10, 3, 1)

    assert not same(gradient, torch.randn(3)).calls

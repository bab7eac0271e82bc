"""What each stage made is shown to who asks for it."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dynacap  # noqa: E402
from dynacap import log  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def test_each_stage_is_shown() -> None:
    with log.collect("aten", "loops", "schedule", "c") as records:
        dynacap.compile(lambda x, w: (x.exp() @ w).relu() * 2, backend="native")(
            torch.randn(4, 5), torch.randn(5, 6)
        )
    assert [record.channel for record in records] == ["aten", "loops", "schedule", "c"]
    aten, loops, schedule, c = (record.message for record in records)
    assert "torch.ops.aten.exp.default" in aten
    assert "= exp(x" in loops
    assert "call aten.mm.default" in loops
    assert "kernel kernel0(x) -> exp_default" in schedule
    assert "static void kernel0(const float *x" in c


def test_a_backward_graph_is_shown_too() -> None:
    x = torch.randn(4, requires_grad=True)
    with log.collect("schedule") as records:
        dynacap.compile(lambda x: x.sin().exp(), backend="native")(x).sum().backward()
    assert len(records) == 2


def test_kernels_that_do_the_same_are_one_function() -> None:
    def fn(x: Any, w: Any, factor: float) -> list[Any]:
        y = (x @ w).relu() * 2
        z = (y @ w).relu() * 2
        return [y, (z @ w).relu() * 3, (z @ w.T).relu() * factor]

    x, w = torch.randn(5, 5), torch.randn(5, 5)
    with log.collect("c") as records:
        found = dynacap.compile(fn, backend="native")(x, w, 1.5)
    torch.testing.assert_close(found, fn(x, w, 1.5))
    assert records[0].message.count("static void kernel") == 3

"""What each stage made is shown to who asks for it."""

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

"""Changes to the world between calls: hypothesis chooses, and compiled must do as eager does."""

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings, strategies as st

import dynacap
from dynacap.testing import Scenario, Tolerance, call, check_scenario
from tests.programs import worlds

pytestmark = [pytest.mark.torch, pytest.mark.slow]


quietly = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@quietly
@given(st.data())
def test_changes_to_the_world_are_noticed(data: st.DataObject) -> None:
    def choose(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    text, changes = worlds.make(choose)
    note(text[len(worlds.WORLD) :])
    note("\n".join(changes))

    def build() -> Scenario:
        world = worlds.World(text, changes)
        calls = [call(torch.ones(1, 2)) for _ in changes]
        program = world.space["program"]
        return Scenario(program, calls, before=world.change, backward=False)

    try:
        with dynacap.config.patch(raise_internal_errors=True, recompile_limit=64):
            check_scenario(build, tolerance=Tolerance(2.0))
    finally:
        worlds.restore()

"""Each kind of change at each kind of place: compiled code leaves behind what eager code does.

The suite takes one place for each change; with DYNACAP_FUZZ_MINUTES set (`make fuzz`) all of them.
"""

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dynacap
from dynacap.testing import Scenario, Tolerance, call, check_scenario
from tests.effects import changes, places, world as worlds

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


EVERYWHERE = "DYNACAP_FUZZ_MINUTES" in os.environ


def rows() -> Iterator[Any]:
    """Every change, with the places where it is tried."""
    names = list(places.PLACES)
    for group, texts in changes.GROUPS.items():
        for index, text in enumerate(texts):
            some = [names[index % len(names)]]
            yield pytest.param(text, names if EVERYWHERE else some, id=f"{group}-{index}")


@pytest.mark.parametrize(("change", "where"), list(rows()))
def test_change_is_left_behind(change: str, where: list[str]) -> None:
    for place in where:
        with dynacap.config.patch(recompile_limit=64):
            check(places.program(place, change))


def check(text: str) -> None:
    """Three calls of a program, all that it touches compared after each, all else at the end."""

    def build() -> Scenario:
        world = worlds.World(text, frozenset(re.findall(r"\w+", text)))

        def before(index: int) -> None:
            world.space["seen"].clear()
            world.space["text"] = ("text", "text", "other")[index]

        def after(index: int, result: Any) -> Any:
            return (drained(world.space), world.everything()) if index == 2 else None

        return Scenario(
            world.space["program"],
            [call(torch.arange(6.0).reshape(2, 3) + turn) for turn in range(3)],
            before=before,
            after=after,
            watch=lambda: (world.touched(), world.space["seen"]),
        )

    check_scenario(build, tolerance=Tolerance(2.0))


def drained(space: dict[str, Any]) -> dict[str, list[Any]]:
    """What the world's iterators give from where they stand."""
    return {name: list(itertools.islice(space[name], 12)) for name in worlds.ITERATORS}

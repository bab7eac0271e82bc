"""Each row of `standard_library`: compiled as eager has it, and captured whole or with leave."""

import linecache
from typing import Any

import pytest
import torch

from dynacap.testing import Scenario, call, check_scenario
from dynacap.testing.check import NOTHING_TO_CAPTURE
from tests.library import standard_library as library

SPACE: dict[str, Any] = {"__name__": "uses_the_library"}
ROWS = [(group, row) for group, rows in library.ROWS.items() for row in rows]


def space() -> dict[str, Any]:
    """The names that rows use; made once, since classes are the same in eager and compiled."""
    if "PRELUDE" not in SPACE:
        SPACE["PRELUDE"] = text = library.PRELUDE + library.HELPERS
        linecache.cache["<library>"] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            "<library>",
        )
        exec(compile(text, "<library>", "exec"), SPACE)
    return SPACE


def uses(row: str) -> Any:
    """The function that evaluates a row."""
    made = space()
    exec(compile(f"def function(x):\n    return x + 1, ({row})\n", "<row>", "exec"), made)
    return made["function"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("group", "row"), ROWS)
def test_the_library(group: str, row: str) -> None:
    function = uses(row)

    def scenario() -> Scenario:
        def before(index: int) -> None:
            if index == 0:
                SPACE["LOG"].clear()

        return Scenario(function, [call(torch.arange(3.0))] * 2, before, watch=lambda: SPACE["LOG"])

    outcome = check_scenario(scenario)
    reasons = {reason.split(":")[0] for reason in outcome.reasons} - {NOTHING_TO_CAPTURE}
    assert reasons <= library.MAY_BREAK.get(group, set()), outcome.reasons

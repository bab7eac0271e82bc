"""The reports are restated to be captured: in each of them there is something for a graph."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def captures_a_graph(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a program that passes because nothing of it was captured."""
    yield
    test: Any = request.function
    outcome = getattr(test, "outcome", None)
    if outcome is not None:  # else the test failed before
        assert outcome.counters["graphs"] > 0, f"no graph was captured: {outcome.reasons}"

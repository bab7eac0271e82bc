"""What the tests of the opcodes have in common."""

import pytest

from dynacap.opcodes.versions import is_known


@pytest.fixture(autouse=True)
def _known_bytecode() -> None:
    """These tests are for the Pythons whose bytecode is described."""
    if not is_known():
        pytest.skip("the bytecode of this Python is not described yet")

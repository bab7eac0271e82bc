"""Every canonical instruction is handled, and every handler is for an instruction that exists."""

import pytest

import dynacap.executor
from dynacap.executor.ops_unsupported import UNSUPPORTED
from dynacap.executor.registry import HANDLERS
from dynacap.opcodes.canonical import OPS

pytestmark = pytest.mark.torch
assert dynacap.executor  # it fills HANDLERS
LATER = "comes from the bytecode of 3.12 and later, which is not described yet"
ASIDE = dict.fromkeys(
    ("BINARY_SLICE", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "STORE_SLICE", "TO_BOOL"), LATER
)  # instructions without a handler


def test_every_instruction_has_a_handler() -> None:
    missing = OPS.keys() - HANDLERS.keys() - ASIDE.keys()
    assert not missing, "write a handler, or a row in executor/ops_unsupported.py"


def test_every_handler_is_for_an_instruction() -> None:
    assert HANDLERS.keys() - OPS.keys() == set()


def test_what_is_unsupported_says_why() -> None:
    assert all(reason and what for reason, what in UNSUPPORTED.values())

"""Every opcode of every supported Python is accounted for, and every canonical one handled.

What a Python has is read from `tests/data/opcodes-3.NN.json`, so each machine checks all tables;
the file of the running Python is held against it.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import dynacap.executor
from dynacap.executor.ops_unsupported import UNSUPPORTED
from dynacap.executor.registry import HANDLERS
from dynacap.opcodes import versions
from dynacap.opcodes.canonical import OPS, pops, pushes
from dynacap.opcodes.instruction import Instruction
from dynacap.opcodes.versions.facts import NEVER_IN_CODE, running
from dynacap.opcodes.versions.protocol import Context, Facts, Version

pytestmark = pytest.mark.torch
assert dynacap.executor  # it fills HANDLERS

DATA = Path(__file__).resolve().parents[1] / "data"
MINORS = (11, 12, 13, 14)
RUNNING = sys.version_info[1]


def dumped(minor: int) -> dict[str, Any]:
    """What one Python says of its opcodes."""
    found: dict[str, Any] = json.loads((DATA / f"opcodes-3.{minor}.json").read_text())
    return found


def facts(minor: int) -> Facts:
    """The same, as the description of that Python takes it."""
    told = dumped(minor)
    opmap = {
        name: op
        for name, op in told["opmap"].items()
        if not name.startswith("INSTRUMENTED_") and name not in NEVER_IN_CODE
    }
    ops = frozenset(opmap.values())
    return Facts(
        opmap=opmap,
        **{kind: ops & set(told[kind]) for kind in ("hasname", "hasfree", "hasjrel", "hasarg")},
        caches={op: told["caches"][name] for name, op in opmap.items()},
        operators=tuple(told["operators"]),
        intrinsics_1=tuple(told["intrinsics"][0]),
        intrinsics_2=tuple(told["intrinsics"][1]),
    )


def described(minor: int) -> Version:
    """The description of one Python, with the facts of that Python."""
    version: Version = versions.module(3, minor).describe(facts(minor))
    return version


def sample() -> CodeType:
    """A code object with two plain locals, two that live in cells, and enough names."""
    source = "def f(a, b, c, d):\n def g(): return c, d\n return x(g, y.z).w"
    code = compile(source, "<sample>", "exec").co_consts[0]
    assert isinstance(code, CodeType)
    return code.replace(co_consts=((), (), (), ()))


def operands(version: Version, name: str, told: dict[str, Any]) -> range:
    """Operands that an opcode may have, so far as they choose what it means."""
    numbered = {
        "BINARY_OP": range(len(told["operators"])),
        "CALL_INTRINSIC_1": range(1, len(told["intrinsics"][0])),  # 0 stands for none
        "CALL_INTRINSIC_2": range(1, len(told["intrinsics"][1])),
        "LOAD_SPECIAL": range(len(told["specials"])),
        "LOAD_COMMON_CONSTANT": range(len(told["constants"])),
    }
    in_cells = version.opcodes[name] in told["hasfree"]
    return numbered.get(name, range(2, 4) if in_cells else range(4))


@cache
def meanings(minor: int) -> dict[str, list[tuple[str, Any]]]:
    """What the opcodes of a Python decode to, those that stand by themselves."""
    told, version = dumped(minor), described(minor)
    return {
        name: [
            piece
            for operand in operands(version, name, told)
            for piece in version.rules[op](operand, Context(sample()))
        ]
        for name, op in version.opcodes.items()
        if op not in version.skipped | version.prefixes
    }


@pytest.mark.parametrize("minor", MINORS)
def test_each_opcode_means_something(minor: int) -> None:
    """Whatever its operand, it decodes to canonical instructions."""
    found = meanings(minor)
    assert not [name for name, pieces in found.items() if not pieces]
    unknown = {(name, piece) for name, pieces in found.items() for piece, _ in pieces} - {
        (name, piece) for name in found for piece in OPS
    }
    assert not unknown, "a rule in opcodes/versions, or a row in opcodes/canonical.py"


@pytest.mark.parametrize("minor", MINORS)
def test_stack_effects_can_be_told(minor: int) -> None:
    for pieces in meanings(minor).values():
        for op, arg in pieces:
            made = Instruction(op, arg, 0, 0, 0, 0, 0, 0, None, (None,) * 4)
            assert min(pops(made), pushes(made), pushes(made, jump=True)) >= 0, made


@pytest.mark.parametrize("minor", MINORS)
def test_each_name_in_a_description_exists(minor: int) -> None:
    """What a version says of an opcode is about one that this Python has."""
    version = described(minor)
    names = {*version.loop_end, *version.forward.values()}
    assert names <= version.opcodes.keys()
    assert (version.skipped | version.prefixes) <= set(version.opcodes.values())


@pytest.mark.parametrize("minor", [14])
def test_the_lists_of_the_interpreter_are_ours(minor: int) -> None:
    """Special methods and common constants stand in the order in which this Python has them."""
    told = dumped(minor)
    ours = versions.module(3, minor)
    assert list(ours.SPECIAL_METHODS) == told["specials"]
    assert [each.__name__ for each in ours.CONSTANTS] == told["constants"]


def test_the_file_of_the_running_python_is_true() -> None:
    namespace: dict[str, Any] = {"__name__": "dump"}
    exec((DATA / "dump_opcodes.py").read_text(), namespace)
    dump: Callable[[], dict[str, Any]] = namespace["facts"]
    assert json.loads(json.dumps(dump())) == dumped(RUNNING), "see tests/data/dump_opcodes.py"
    assert facts(RUNNING) == running()


def test_every_instruction_has_a_handler() -> None:
    missing = OPS.keys() - HANDLERS.keys()
    assert not missing, "write a handler, or a row in executor/ops_unsupported.py"


def test_every_handler_is_for_an_instruction() -> None:
    assert HANDLERS.keys() - OPS.keys() == set()


def test_every_instruction_occurs() -> None:
    """Nothing is left in the canonical table that no Python decodes to."""
    made = {op for minor in MINORS for pieces in meanings(minor).values() for op, _ in pieces}
    assert OPS.keys() - made == set()


def test_what_is_unsupported_says_why() -> None:
    assert all(reason and what for reason, what in UNSUPPORTED.values())

"""Generators that wait: a real one is put where the traced one stands, without running it."""

from __future__ import annotations

from typing import Any

from dynacap.codegen import runtime
from dynacap.codegen.emit import Emitter
from dynacap.guards.generators import GeneratorSlot, is_over
from dynacap.guards.raw import MISSING
from dynacap.hook import generator_access
from dynacap.opcodes.versions.protocol import localsplus
from dynacap.values.base import Value
from dynacap.values.function import GeneratorValue

_YIELD_FROM = 2  # operand of the RESUME that follows a yield inside ``yield from``


def can_put(value: GeneratorValue) -> bool:
    """Whether the state of a suspended generator is all in its frame, and frames can be written."""
    return generator_access() is not None and value.handled is None


def put(e: Emitter, value: GeneratorValue, name: str) -> str:
    """The expression that puts a generator of the same function there, and gives it."""
    access = generator_access()
    if not can_put(value):
        e.machine.graph_break("generator-frame", "a generator waits where it handles an exception")
    assert access is not None
    frame = value.frame
    missing = e.constant(MISSING, "MISSING")
    changes = []
    for slot, cell in enumerate(localsplus(frame.function.code)):
        held = frame.locals[slot] if cell is None else frame.cells[cell]
        if held is None:
            changes.append(f"{slot}: {missing}")
        elif value.source is None or held.source != GeneratorSlot(value.source, slot):
            changes.append(f"{slot}: {e.expr(held)}")
    stack = [e.expr(item) if isinstance(item, Value) else missing for item in frame.stack]
    delegates = frame.instructions[frame.index + 1].arg & 3 >= _YIELD_FROM
    return (
        f"{e.helper(access[1])}({name}, {frame.instructions[frame.index].lasti}, {delegates},"
        f" {{{', '.join(changes)}}}, ({''.join(text + ', ' for text in stack)}), {missing})"
    )


def end_generator(generator: Any) -> None:
    """Have a generator be at its end, without running it: closed before it started, so to speak."""
    access = generator_access()
    if access is None or is_over(generator):
        return
    code = getattr(generator, "gi_code", None) or generator.cr_code
    nothing = dict.fromkeys(range(len(localsplus(code))), MISSING)
    access[1](generator, 0, False, nothing, (), MISSING)
    generator.close()


def replay_generator(e: Emitter, value: GeneratorValue) -> None:
    """What an outside generator did inside is done to it."""
    name = e.expr(value)
    if value.state == "done":
        e.line(f"{e.helper(end_generator)}({name})")
    elif value.state == "suspended":
        e.line(put(e, value, name))


def rebuild_suspended(e: Emitter, value: GeneratorValue, function: str) -> str:
    """A new generator of a function, put there."""
    return e.let("generator", put(e, value, f"{e.helper(runtime.new_generator)}({function})"))

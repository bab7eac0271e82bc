"""Generators from outside, or from before a graph break: they go on from where their frames stand.

The real one stays as it is while capturing; once the graph has run, its frame is given what the
traced one holds then (:mod:`dynacap.codegen.generators`).
"""

from __future__ import annotations

import types
from typing import Any

from dynacap.executor.finalizers import has_finalizer
from dynacap.executor.frame import Frame
from dynacap.guards import generators as reading
from dynacap.guards.generators import GeneratorFunction, GeneratorShape, GeneratorSlot
from dynacap.guards.raw import MISSING
from dynacap.guards.source import Source
from dynacap.hook import generator_access
from dynacap.opcodes import decode
from dynacap.opcodes.analysis import Kind
from dynacap.opcodes.versions.protocol import localsplus
from dynacap.resume.point import stack_kinds
from dynacap.values.base import NONE, NULL, Lazy, Value
from dynacap.values.build import build_object, builds, guard_type
from dynacap.values.function import FunctionValue, GeneratorValue

MOST_BUILT = 12  # times in one place; then what its generators hold varies too much to be captured

_access = generator_access()
if _access is not None:
    reading.reader.append(_access[0])


@builds(*reading.KINDS)
def build_generator(m: Any, real: Any, source: Source | None) -> Value:
    """A generator; its frame is read, and guarded, once it goes on."""
    if source is None or _access is None:
        return build_object(m, real, source)
    guard_type(m, real, source)
    return GeneratorValue(None, None, type(real), state="outside", real=real, source=source)


def read_frame(m: Any, gen: GeneratorValue) -> None:
    """Have the frame of a generator from outside, to go on with it; breaks if it cannot be read."""
    state = reading.state(gen.real)
    index = None if state is None else _place(state)
    shape, source = reading.shape(gen.real, state), gen.source
    assert source is not None
    if shape != reading.FINISHED and (state is None or index is None or _varies(m, state[0])):
        m.graph_break("outside-generator", "a generator that was made outside goes on")
    m.guard("ConstEq", GeneratorShape(source), shape)
    if state is None or index is None:
        gen.state = "done"
        return
    gen.function = m.wrap(state[1], GeneratorFunction(source))
    gen.frame = frame = _frame(m, gen.function, state, source)
    frame.index, frame.pc, frame.generator = index, index + 1, gen
    gen.state = "suspended" if state[2] >= 0 else "new"
    if gen.state == "new":
        frame.push(NONE)  # what the first ``next`` sends


def _place(state: reading.GeneratorState) -> int | None:
    """The instruction at which a generator waits, if it can go on from there."""
    code, _, lasti, slots, held = state
    decoded = decode(code)
    if lasti < 0:
        return next(i.index for i in decoded.instructions if i.op == "RETURN_GENERATOR")
    index = decoded.index_at(lasti)
    kinds = stack_kinds(code, index)[:-1]
    plain = {Kind.VALUE, Kind.NULL, Kind.MAYBE_NULL}.issuperset(kinds)
    fits = decoded.instructions[index].op == "YIELD_VALUE" and len(kinds) == len(held) - slots
    return index if plain and fits else None


def _varies(m: Any, code: types.CodeType) -> bool:
    built: dict[types.CodeType, int] = m.tensors.history.generators
    built[code] = built.get(code, 0) + 1
    return built[code] > MOST_BUILT


def _frame(m: Any, function: FunctionValue, state: reading.GeneratorState, source: Source) -> Frame:
    code, _, _, slots, held = state
    globals_, builtins = m.globals_of(function)
    frame = Frame(function, globals_, builtins, [None] * code.co_nlocals)
    m.finalizers.outside |= {id(each) for each in held if has_finalizer(each)}
    for slot, cell in enumerate(localsplus(code)):
        if held[slot] is MISSING:
            continue
        if cell is None:
            frame.locals[slot] = Lazy(held[slot], source=GeneratorSlot(source, slot))
        else:
            frame.cells[cell] = m.wrap(held[slot], GeneratorSlot(source, slot))
    for slot in range(slots, len(held)):
        missing = held[slot] is MISSING
        frame.push(NULL if missing else m.wrap(held[slot], GeneratorSlot(source, slot)))
    return frame

"""How suspended frames that leave the captured region are made anew: generators."""

from __future__ import annotations

from dynacap.codegen import runtime
from dynacap.codegen.emit import Emitter, rebuilds
from dynacap.codegen.generators import can_put, rebuild_suspended
from dynacap.executor.chain import frame_state
from dynacap.executor.frame import Frame
from dynacap.resume import generator_code, make_generator
from dynacap.values.base import Value
from dynacap.values.function import GeneratorValue
from dynacap.values.object import TracebackValue


@rebuilds(GeneratorValue)
def rebuild_generator(e: Emitter, value: GeneratorValue) -> str:
    """A real generator that goes on where the traced one stands."""
    function = e.expr(value.function)
    if value.state == "done":
        return e.let("generator", f"{e.helper(runtime.finished_generator)}({function})")
    frame: Frame = value.frame
    if value.state == "new":
        bound = [held for held in frame.locals if isinstance(held, Value)]
        call = e.helper(runtime.call_flat)
        return e.let("generator", f"{call}(({function}, {e.exprs(bound)}))")
    if can_put(value):
        return rebuild_suspended(e, value, function)
    point, values = frame_state(frame, frame.index, waiting=False)
    code = e.constant(generator_code(frame.function.code, point), "generator_code")
    maker = e.helper(make_generator)
    return e.let("generator", f"{maker}({function}, {code}, (), ({e.exprs(values)}))")


@rebuilds(TracebackValue)
def rebuild_traceback(e: Emitter, value: TracebackValue) -> str:
    """Nothing is like one that CPython made: what raised the exception runs eagerly."""
    detail = f"the traceback of {value.exc.describe()} is kept"
    never: str = e.machine.graph_break("traceback", detail, before=value.exc.raised_at)
    return never

"""How suspended frames that leave the captured region are made anew: generators."""

from __future__ import annotations

from dynacap.codegen import runtime
from dynacap.codegen.emit import Emitter, rebuilds
from dynacap.executor.chain import frame_state
from dynacap.executor.frame import Frame
from dynacap.resume import generator_code, make_generator
from dynacap.values.base import Value
from dynacap.values.function import GeneratorValue
from dynacap.values.object import ExceptionValue, TracebackValue


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
    point, values = frame_state(frame, frame.index, waiting=False)
    code = e.constant(generator_code(frame.function.code, point), "generator_code")
    maker = e.helper(make_generator)
    return e.let("generator", f"{maker}({function}, {code}, (), ({e.exprs(values)}))")


@rebuilds(TracebackValue)
def rebuild_traceback(e: Emitter, value: TracebackValue) -> str:
    """The traceback that the exception has, or that it had."""
    exc = value.exc
    if isinstance(exc, ExceptionValue) and exc.trail != value.trail and exc.real is None:
        return f"{e.helper(runtime.make_traceback)}(None, {tuple(value.trail)!r})"
    return f"{e.expr(exc)}.__traceback__"

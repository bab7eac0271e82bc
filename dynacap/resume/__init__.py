"""Going on from the midst of a frame: code objects that take the frame's state as arguments."""

from dynacap.resume.builder import Step as Step
from dynacap.resume.call import bind as bind, make_generator as make_generator
from dynacap.resume.generator import generator_code as generator_code
from dynacap.resume.plain import plain_code as plain_code, waiting_code as waiting_code
from dynacap.resume.point import (
    RETURN as RETURN,
    Outcome as Outcome,
    Point as Point,
    Return as Return,
    enter as enter,
    entry_index as entry_index,
)
from dynacap.resume.step import step_code as step_code
from dynacap.resume.throw import (
    call_handling as call_handling,
    raise_code as raise_code,
    throw_code as throw_code,
)

"""Going on from the midst of a frame: code objects that take the frame's state as arguments."""

from dynacap.resume.builder import Step
from dynacap.resume.call import bind, make_generator
from dynacap.resume.generator import generator_code
from dynacap.resume.plain import plain_code, waiting_code
from dynacap.resume.point import RETURN, Outcome, Point, Return, enter, entry_index
from dynacap.resume.step import step_code
from dynacap.resume.throw import call_handling, throw_code

__all__ = [
    "RETURN",
    "Outcome",
    "Point",
    "Return",
    "Step",
    "bind",
    "call_handling",
    "enter",
    "entry_index",
    "generator_code",
    "make_generator",
    "plain_code",
    "step_code",
    "throw_code",
    "waiting_code",
]

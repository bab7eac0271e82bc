"""Generators and coroutines that wait, or have not started: where they stand, what frames hold.

The frame is read in C, by what the frame hook offers (:data:`reader`); without it nothing is known.
"""

from collections.abc import Callable
from types import CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any

from dynacap.guards.iterators import Read
from dynacap.guards.raw import MISSING

GeneratorState = tuple[CodeType, FunctionType, int, int, tuple[Any, ...]]
"""The code, the function, the offset of the yield (-1 before the start), how many slots there are
for variables, and what these and the stack hold, MISSING where that is nothing."""

FINISHED = "finished"
KINDS = (GeneratorType, CoroutineType)
reader: list[Callable[[object, object], GeneratorState | None]] = []


def state(generator: object) -> GeneratorState | None:
    """The state of a generator; None where it cannot be told."""
    if not reader or type(generator) not in KINDS:
        return None
    found = reader[0](generator, MISSING)
    return found if found is not None and found[1].__code__ is found[0] else None


class GeneratorShape(Read):
    """Where a generator stands, and which of its slots hold something."""

    __slots__ = ()
    op = "generator_shape"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        return shape(value, state(value))


def shape(generator: Any, found: GeneratorState | None) -> Any:
    """The same, of one whose state is known if it can be."""
    if found is not None:
        return found[2], tuple(held is not MISSING for held in found[4])
    return FINISHED if type(generator) in KINDS and is_over(generator) else MISSING


def is_over(generator: Any) -> bool:
    """Whether a generator or coroutine has come to its end."""
    frame = generator.gi_frame if type(generator) is GeneratorType else generator.cr_frame
    return frame is None


class GeneratorSlot(Read):
    """What a slot of a generator's frame holds; those of the stack come last."""

    __slots__ = ()
    op = "generator_slot"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        found = state(value)
        return MISSING if found is None or key >= len(found[4]) else found[4][key]


class GeneratorFunction(Read):
    """The function that a generator runs."""

    __slots__ = ()
    op = "generator_function"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        found = state(value)
        return MISSING if found is None else found[1]


READS: tuple[type[Read], ...] = (GeneratorShape, GeneratorSlot, GeneratorFunction)

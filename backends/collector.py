"""Python's cyclic garbage collector rests while dynacap compiles.

Capture makes many small objects and keeps nearly all to its end, when most of them die at once.
A collection before that walks them, and all that is loaded, for nothing; it takes longer than
capture itself, the more so the larger the program.  Backends, which may run for long and leave
garbage, work with the collector on, unless they ask for rest themselves.
"""

import contextlib
import gc
from collections.abc import Iterator

_rests: list[bool] = []  # of each compilation in any thread: whether the collector was on before


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """No collections inside; at the end, one of what was made meanwhile.

    Else the next object that the program makes would begin one, of all that is old as well if it
    is time for that: the rest, not the program, has made so much.
    """
    before = gc.isenabled()
    gc.disable()
    _rests.append(before)
    try:
        yield
    finally:
        _rests.remove(before)
        if before:
            if gc.get_threshold()[0]:  # 0: the program wants none by itself
                gc.collect(0)
            gc.enable()


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Collections all the same, if there were any before."""
    if gc.isenabled() or not any(_rests):
        yield
        return
    gc.enable()
    try:
        yield
    finally:
        if any(_rests):
            gc.disable()

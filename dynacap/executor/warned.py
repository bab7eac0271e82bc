"""A warning that points at a caller: where the callers stand is known while capturing."""

from __future__ import annotations

import functools
import warnings

from dynacap.codegen.warned import warn_at
from dynacap.executor.machine import Machine
from dynacap.values.base import Const, Known, Value
from dynacap.values.callables import PartialValue
from dynacap.values.container import TupleValue, fresh_dict


def place_warning(m: Machine) -> bool:
    """Have the instruction that calls ``warnings.warn`` next tell the places of the frames as well;
    False if it is not that instruction which calls it.
    """
    stack = m.frames[-1].stack
    for at, item in enumerate(stack):
        if type(item) is Known and item.value is warnings.warn:
            places: list[Value] = [
                TupleValue([Const(f.function.code.co_filename), Const(f.line()), f.globals])
                for f in reversed(m.frames)
            ]
            told = TupleValue([TupleValue(places)])
            stack[at] = PartialValue(functools.partial, Known(warn_at), told, fresh_dict(m, []))
            return True
    return False

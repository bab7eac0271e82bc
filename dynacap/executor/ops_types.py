"""Type parameters and aliases: no capture looks into one; what leaves the region is made there."""

from __future__ import annotations

import typing
from typing import Any

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.canonical import TYPES, pops
from dynacap.opcodes.instruction import Instruction
from dynacap.resume.alone import alone
from dynacap.values.base import Value
from dynacap.values.function import FunctionValue
from dynacap.values.recipe import Made

_SET = "SET_FUNCTION_TYPE_PARAMS"
_NAMES = {"TYPEALIAS": "TypeAliasType", "SUBSCRIPT_GENERIC": "_GenericAlias"}
_NAMES |= {"PARAMSPEC": "ParamSpec", "TYPEVARTUPLE": "TypeVarTuple"}


@handles(*(TYPES.keys() - {_SET}))
def make_type(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop what the instruction takes, push what it makes; a default is given to what it pops."""
    operands: list[Any] = f.pop_many(pops(i))
    cls = getattr(typing, _NAMES.get(i.op, "TypeVar"))
    if i.op == "SET_TYPEPARAM_DEFAULT":
        cls = operands[0].cls
    f.push(Made(cls, alone(f.function.code.co_code[i.offset : i.end], len(operands)), operands))


def _set_parameters(m: Machine, _: Any, function: FunctionValue, parameters: Value) -> Value:
    function.fields["type_params"] = parameters
    return function


operation(_SET, _set_parameters)

"""Code objects as canonical instructions, one set for all Pythons."""

from dynacap.opcodes.code import Code, decode
from dynacap.opcodes.instruction import (
    Call,
    CellSlot,
    Format,
    GlobalName,
    Handler,
    Instruction,
    Positions,
    Unpack,
)

__all__ = [
    "Call",
    "CellSlot",
    "Code",
    "Format",
    "GlobalName",
    "Handler",
    "Instruction",
    "Positions",
    "Unpack",
    "decode",
]

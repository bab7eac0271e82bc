"""Code objects as canonical instructions, one set for all Pythons."""

from dynacap.opcodes.code import Code, decode
from dynacap.opcodes.instruction import (
    Call,
    CellSlot,
    Format,
    Handler,
    Instruction,
    Positions,
    SuperName,
    Unpack,
)

__all__ = [
    "Call",
    "CellSlot",
    "Code",
    "Format",
    "Handler",
    "Instruction",
    "Positions",
    "SuperName",
    "Unpack",
    "decode",
]

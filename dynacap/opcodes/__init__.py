"""Code objects as canonical instructions, one set for all Pythons."""

from dynacap.opcodes.code import Code as Code, decode as decode
from dynacap.opcodes.instruction import (
    Call as Call,
    CellSlot as CellSlot,
    Format as Format,
    Handler as Handler,
    Instruction as Instruction,
    Positions as Positions,
    SuperName as SuperName,
    Unpack as Unpack,
)

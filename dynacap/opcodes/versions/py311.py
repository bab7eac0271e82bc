"""CPython 3.11."""

import dis
import opcode
from collections.abc import Callable

from dynacap.opcodes.instruction import Call, CellSlot, Format, GlobalName, Unpack
from dynacap.opcodes.versions.protocol import Context, Pieces, Rule, Version

CONVERSIONS = (None, str, repr, ascii)
OPERATORS = tuple(symbol for _, symbol in opcode._nb_ops)  # type: ignore[attr-defined]

RENAMED = {
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "JUMP_BACKWARD_NO_INTERRUPT": "JUMP",
    **{
        f"POP_JUMP_{way}_IF_{test}": f"POP_JUMP_IF_{test}"
        for way in ("FORWARD", "BACKWARD")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}


def _plain(name: str) -> Rule:
    pieces: Pieces = ((name, None),)
    return lambda arg, context: pieces


def _number(name: str) -> Rule:
    return lambda arg, context: ((name, arg),)


def _name(name: str) -> Rule:
    return lambda arg, context: ((name, context.code.co_names[arg]),)


def _cell(name: str) -> Rule:
    return lambda arg, context: ((name, context.localsplus[arg]),)


def _flag(name: str) -> Rule:
    return lambda arg, context: ((name, bool(arg)),)


def _constant(arg: int, context: Context) -> Pieces:
    return (("LOAD_CONST", context.code.co_consts[arg]),)


def _global(arg: int, context: Context) -> Pieces:
    return (("LOAD_GLOBAL", GlobalName(context.code.co_names[arg >> 1], bool(arg & 1))),)


def _make_cell(arg: int, context: Context) -> Pieces:
    cell = context.localsplus[arg]
    assert cell is not None
    return (("MAKE_CELL", CellSlot(cell, arg if arg < context.nlocals else None)),)


def _compare(arg: int, context: Context) -> Pieces:
    return (("COMPARE_OP", dis.cmp_op[arg]),)


def _operator(arg: int, context: Context) -> Pieces:
    return (("BINARY_OP", OPERATORS[arg]),)


def _unpack(arg: int, context: Context) -> Pieces:
    return (("UNPACK_EX", Unpack(arg & 0xFF, arg >> 8)),)


def _format(arg: int, context: Context) -> Pieces:
    return (("FORMAT_VALUE", Format(CONVERSIONS[arg & 3], bool(arg & 4))),)


def _call(arg: int, context: Context) -> Pieces:
    names, context.kwnames = context.kwnames, ()
    return (("CALL", Call(arg, names)),)


def _kw_names(arg: int, context: Context) -> Pieces:
    context.kwnames = context.code.co_consts[arg]
    return ()


SPECIAL: dict[str, Rule] = {
    "LOAD_CONST": _constant,
    "LOAD_GLOBAL": _global,
    "MAKE_CELL": _make_cell,
    "COMPARE_OP": _compare,
    "BINARY_OP": _operator,
    "UNPACK_EX": _unpack,
    "FORMAT_VALUE": _format,
    "CALL": _call,
    "KW_NAMES": _kw_names,
    "IS_OP": _flag("IS_OP"),
    "CONTAINS_OP": _flag("CONTAINS_OP"),
    "CALL_FUNCTION_EX": _flag("CALL_FUNCTION_EX"),
}


def _rule(name: str, op: int) -> Rule:
    """Choose the rule of an opcode by the kind of operand that `opcode` gives it."""
    if name in SPECIAL:
        return SPECIAL[name]
    name = RENAMED.get(name, name)
    if op in opcode.hasname:
        return _name(name)
    if op in opcode.hasfree:
        return _cell(name)
    if op < opcode.HAVE_ARGUMENT or op in opcode.hasjrel:
        return _plain(name)
    return _number(name)


OPMAP = opcode.opmap

# Where canonical jumps are written, they go forward.
FORWARD = {
    "JUMP": "JUMP_FORWARD",
    **{
        f"POP_JUMP_IF_{test}": f"POP_JUMP_FORWARD_IF_{test}"
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

VALUE_ONLY: dict[str, Callable[[int], tuple[str, int]]] = {
    "LOAD_GLOBAL": lambda arg: ("LOAD_GLOBAL", arg & ~1),
    "LOAD_METHOD": lambda arg: ("LOAD_ATTR", arg),
}


def _codes(*names: str) -> frozenset[int]:
    return frozenset(OPMAP[name] for name in names)


VERSION = Version(
    rules={op: _rule(name, op) for name, op in OPMAP.items()},
    skipped=_codes("CACHE", "NOP"),
    prefixes=_codes("EXTENDED_ARG", "PRECALL", "KW_NAMES"),
    backward=frozenset(op for name, op in OPMAP.items() if "BACKWARD" in name),
    jumps=frozenset(opcode.hasjrel),
    extended_arg=OPMAP["EXTENDED_ARG"],
    caches={op: opcode._inline_cache_entries[op] for op in OPMAP.values()},  # type: ignore[attr-defined]
    opcodes=OPMAP,
    forward=FORWARD,
    slot_operands=frozenset(opcode.hasfree),
    value_only=VALUE_ONLY,
)

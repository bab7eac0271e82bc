"""Conditions on sizes as a program for the C checker: each distinct part is computed once.

The conditions come as Python text (``relations.Sizes``), whose meaning is the text's own.  What is
written here gives the same answer or none: where 64 bits or the exact range of a double are left,
where a divisor is 0, or where something is no plain tensor, C asks the text.  A text with parts
that have no instruction is left to Python altogether.
"""

import ast
import struct
from collections.abc import Sequence

Instruction = tuple[str, int, int, int]  # name, two operands (of cells or values), a number
MAX_CELLS = 256

_ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_FLOAT_ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
# Which instruction, and whether its operands change places.
_COMPARISONS: dict[type[ast.AST], tuple[str, bool]] = {
    ast.Eq: ("eq", False),
    ast.NotEq: ("ne", False),
    ast.Lt: ("lt", False),
    ast.LtE: ("le", False),
    ast.Gt: ("lt", True),
    ast.GtE: ("le", True),
}
_TRUTH: dict[type[ast.AST], str] = {ast.And: "and", ast.Or: "or"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}


class _Unfit(Exception):
    """No instruction says this."""


class _Writer:
    """Instructions so far; ``cells`` says which of them are floats."""

    def __init__(self) -> None:
        self.code: list[Instruction] = []
        self._known: dict[Instruction, int] = {}
        self._floats: set[int] = set()

    def _add(self, name: str, left: int = 0, right: int = 0, number: int = 0) -> int:
        instruction = (name, left, right, number)
        cell = self._known.get(instruction)
        if cell is None:
            if len(self.code) >= MAX_CELLS:
                raise _Unfit
            cell = self._known[instruction] = len(self.code)
            self.code.append(instruction)
        return cell

    def _float(self, name: str, left: int = 0, right: int = 0, number: int = 0) -> int:
        cell = self._add(name, left, right, number)
        self._floats.add(cell)
        return cell

    def _as_float(self, cell: int) -> int:
        return cell if cell in self._floats else self._float("float", cell)

    def require(self, condition: ast.expr) -> None:
        """Let the program end with no unless this holds."""
        if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
            for part in condition.values:
                self.require(part)
        else:
            self._add("require", self._truth(condition))

    def _truth(self, node: ast.expr) -> int:
        """The cell of a condition: 0 or 1."""
        match node:
            case ast.BoolOp():
                cells = [self._truth(part) for part in node.values]
                return self._folded(_TRUTH[type(node.op)], cells)
            case ast.UnaryOp(op=ast.Not()):
                return self._add("not", self._truth(node.operand))
            case ast.Compare():
                cells = [self._value(part) for part in (node.left, *node.comparators)]
                pairs = zip(node.ops, cells, cells[1:], strict=False)
                return self._folded("and", [self._comparison(*pair) for pair in pairs])
            case ast.Constant(value=bool(value)):
                return self._add("int", number=int(value))
        raise _Unfit

    def _folded(self, name: str, cells: list[int]) -> int:
        result = cells[0]
        for cell in cells[1:]:
            result = self._add(name, result, cell)
        return result

    def _comparison(self, operator: ast.cmpop, left: int, right: int) -> int:
        if type(operator) not in _COMPARISONS:
            raise _Unfit
        name, swapped = _COMPARISONS[type(operator)]
        if swapped:
            left, right = right, left
        if {left, right} & self._floats:
            return self._add("f" + name, self._as_float(left), self._as_float(right))
        return self._add(name, left, right)

    def _value(self, node: ast.expr) -> int:
        """The cell of a number."""
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self._constant(-value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negated(self._value(operand))
            case ast.BinOp():
                return self._binary(node)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._call(function, arguments)
            case ast.Name() | ast.Subscript():
                return self._read(node)
            case ast.Attribute(value=ast.Name(id=name), attr="real"):
                return self._float("real", _index(name))
        raise _Unfit

    def _constant(self, value: object) -> int:
        if value in ("inf", "-inf", "nan"):
            value = float(value)
        if type(value) is float:
            return self._float("constant", number=struct.unpack("q", struct.pack("d", value))[0])
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return self._add("int", number=value)
        raise _Unfit

    def _negated(self, cell: int) -> int:
        if cell in self._floats:
            return self._float("fmul", cell, self._constant(-1.0))  # of NaN, only the sign differs
        return self._add("sub", self._constant(0), cell)

    def _binary(self, node: ast.BinOp) -> int:
        if isinstance(node.op, ast.Pow):
            return self._power(node)
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Div) or {left, right} & self._floats:
            if type(node.op) not in _FLOAT_ARITHMETIC:
                raise _Unfit
            name = _FLOAT_ARITHMETIC[type(node.op)]
            return self._float(name, self._as_float(left), self._as_float(right))
        if type(node.op) not in _ARITHMETIC:
            raise _Unfit
        return self._add(_ARITHMETIC[type(node.op)], left, right)

    def _power(self, node: ast.BinOp) -> int:
        base = self._value(node.left)
        match node.right:
            case ast.Constant(value=int(times)) if 1 <= times <= 8 and base not in self._floats:
                return self._folded("mul", [base] * times)
        raise _Unfit

    def _call(self, function: ast.expr, arguments: list[ast.expr]) -> int:
        match function:
            case ast.Name(id="min" | "max" as name) if len(arguments) > 1:
                cells = [self._value(argument) for argument in arguments]
                if set(cells) & self._floats:
                    raise _Unfit
                return self._folded(name, cells)
            case ast.Name(id="float") if len(arguments) == 1:
                return self._as_float(self._value(arguments[0]))
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if len(arguments) == 1:
                return self._rounded(name, self._value(arguments[0]))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return self._asked(name, attribute, arguments)
        raise _Unfit

    def _rounded(self, name: str, cell: int) -> int:
        if name not in _ROUNDING:
            raise _Unfit
        return self._add(_ROUNDING[name], cell) if cell in self._floats else cell

    def _asked(self, name: str, attribute: str, arguments: list[ast.expr]) -> int:
        if attribute == "storage_offset" and not arguments:
            return self._add("offset", _index(name))
        match attribute, arguments:
            case "stride", [ast.Constant(value=int(dim))] if dim >= 0:
                return self._add("stride", _index(name), dim)
        raise _Unfit

    def _read(self, node: ast.expr) -> int:
        match node:
            case ast.Name(id=name):
                return self._add("number", _index(name))
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=int(dim)),
            ) if dim >= 0:
                return self._add("size", _index(name), dim)
        raise _Unfit


def _index(name: str) -> int:
    if name[:1] != "v" or not name[1:].isdigit():
        raise _Unfit
    return int(name[1:])


def write_program(conditions: Sequence[str]) -> tuple[Instruction, ...]:
    """The instructions for conditions that must all hold; none if Python has to be asked."""
    writer = _Writer()
    try:
        for condition in conditions:
            writer.require(ast.parse(condition, mode="eval").body)
    except _Unfit:
        return ()
    return tuple(writer.code)

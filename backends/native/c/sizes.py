"""Sizes as C expressions."""

from __future__ import annotations

from typing import Any

from torch.utils._sympy.printers import ExprPrinter

from dynacap.backends.native.loops.program import Number


class _Printer(ExprPrinter):
    """The operations that torch's symbolic sizes are made of, on ``int64_t``."""

    def _print_Symbol(self, expr: Any) -> str:
        return str(expr.name)

    def _print_Integer(self, expr: Any) -> str:
        if abs(int(expr)) >= 2**63:
            raise NotImplementedError(f"{expr} is no number of C's")
        return str(int(expr))

    def _print_FloorDiv(self, expr: Any) -> str:
        left, right = map(self._print, expr.args)
        return f"dynacap_floor_div({left}, {right})"

    def _print_PythonMod(self, expr: Any) -> str:
        left, right = map(self._print, expr.args)
        return f"dynacap_floor_mod({left}, {right})"

    def _print_ModularIndexing(self, expr: Any) -> str:
        value, divisor, modulus = map(self._print, expr.args)
        return f"dynacap_floor_mod(dynacap_floor_div({value}, {divisor}), {modulus})"

    _print_Mod = _print_PythonMod

    def _print_Pow(self, expr: Any) -> str:
        return "(" + " * ".join(self.parenthesize(base, 1000) for base in _factors(expr)) + ")"

    def _print_Max(self, expr: Any) -> str:
        return self._nested("dynacap_max", expr.args)

    def _print_Min(self, expr: Any) -> str:
        return self._nested("dynacap_min", expr.args)

    def _nested(self, function: str, args: Any) -> str:
        first, *rest = args
        return (
            f"{function}({self._print(first)}, {self._nested(function, rest)})"
            if rest
            else (self._print(first))
        )

    def emptyPrinter(self, expr: Any) -> str:
        raise NotImplementedError(f"size {expr} ({type(expr).__name__})")

    _print_Rational = emptyPrinter


class _Checked(_Printer):
    """Sums and products that say so when they leave ``int64_t``."""

    def _print_Add(self, expr: Any, order: str | None = None) -> str:
        return self._nested("dynacap_add", expr.args)

    def _print_Mul(self, expr: Any) -> str:
        return self._nested("dynacap_mul", expr.args)

    def _print_Pow(self, expr: Any) -> str:
        return self._nested("dynacap_mul", _factors(expr))


def _factors(power: Any) -> list[Any]:
    base, exponent = power.args
    if not (exponent.is_integer and exponent.is_number and exponent > 0):
        raise NotImplementedError(f"size {power}")
    return [base] * int(exponent)


_printer, _checked = _Printer(), _Checked()


def number_text(number: Any) -> str:
    """A size, or a float by the bits of it, as 64 bits."""
    return f"dynacap_double({number.name})" if isinstance(number, Number) else size_text(number)


def size_text(size: Any) -> str:
    """An int or a sympy expression, as C."""
    return str(size) if isinstance(size, int) else f"({_printer.doprint(size)})"


def checked_text(number: Any) -> str:
    """The same; ``dynacap_large`` is set if any number on the way to it is not one of C's."""
    return str(_checked.doprint(number))

"""All functions and classes of `builtins`, `math`, `cmath` and `operator`, by their names.

As in `test_methods`: each with operands of every kind, and captured whole where it is pure.
"""

import builtins
import cmath
import math
import operator
from types import ModuleType
from typing import Any

import pytest
import torch

from dynacap.testing import Scenario, call, check_scenario
from dynacap.testing.check import NOTHING_TO_CAPTURE
from tests.builtins import calls

X = torch.arange(3.0)
RECEIVER = "[3, 1, 2, 1]"
# what no test can call: it waits for someone, ends the process, or loads what is not there
LEFT_OUT = {
    "open", "id", "__import__", "breakpoint", "input", "exit", "quit", "help", "license",
    "credits", "copyright",
}  # fmt: skip
# by their own handlers or for real; a module's functions have the operands of their kind as well
MODULES: dict[ModuleType, list[str]] = {
    builtins: [
        "[1, 0, 3], 2", "'1 + 1'", "'ab', 'cd'", "[1, 2], [3, 4]", "lambda v: v, [1, 2]",
        "None, [0, 1]", "lambda: 1, 2", "[2, 1], key=lambda v: -v", "[(1, 'b'), (0, 'a')]",
        "'real'", "5, 'real'", "5, 'no', 7", "1, 2, key=str", "[], default=3", "5, int",
        "5, (int, str)", "int, object", "bool, (str, int)", "2.567, 2", "7, 3", "2, 3, 5",
        "[1, 2], start=10", "['a'], 5", "[[1], [2]], []", "'abc', strict=True", "'12', base=5",
        "b'ab', 'ascii'", "'ab', 'utf-8', 'strict'", "{'k': 1}, z=2", "3, -1, -1", "97", "255",
    ],
    math: ["0.5", "-0.5", "3", "2.5, 1.5", "12, 18", "[1.5, 2.5]", "5, 2", "8, 2", "-0.0",
           "float('nan')", "float('inf')", "1e308", "[3, 4], [0, 0]", "1, 1.0000000001",
           "1, 2, rel_tol=0.6", "[2, 3], start=4", "0.5, 3", "10**400", "171"],
    cmath: ["0.5", "1+2j", "-0.0", "float('nan')", "1j, 2", "1+1j, 1+1j"],
    operator: ["[1, 2], 0", "[1, 2], 0, 5", "{'a': 1}, 'a'", "5, 3", "2.5, 2", "'ab', 'b'",
               "[1], [2]", "'real'", "0, 1", "'a', 'b', 'c'", "'x.y'", "[1, 1], 1", "True, False",
               "len, [1]", "(1, 2), slice(1)", "'upper'", "[1, 2], slice(0, 1), [9]", "int, '7'"],
}  # fmt: skip
# Why capture may stop in those that are no pure operations on what they are given.
MAY_BREAK: dict[str, set[str]] = {
    "print": {"print"},
    "compile": {"dynamic-code"},
    "eval": {"running-frame", "dynamic-code"},
    "exec": {"running-frame", "dynamic-code"},
    "delattr": {"unsupported-field"},
    "setattr": {"unsupported-field"},
    "dir": {"running-frame", "unsupported-call"},
    "locals": {"frame-introspection", "running-frame"},
    "vars": {"running-frame", "class-dict", "graph break [class-dict]"},
    "globals": {"frame-introspection"},
    "type": {"class-creation"},
    "memoryview": {"unsupported-call"},
    "bytearray": {"unsupported-call"},
    "super": {"super"},
    "__build_class__": {"class-creation"},
    "aiter": {"async", "unsupported-call"},
    "anext": {"async", "unsupported-call"},
    "inv": {"warning"},  # of bool, since 3.12
    "invert": {"warning"},
    "map": {"bad-arguments"},  # strict=True, since 3.14
}
ALWAYS = {NOTHING_TO_CAPTURE, "address"}


def names(module: ModuleType) -> list[str]:
    """What of a module can be called; exceptions are held to eager in other tests."""
    found = []
    for name in dir(module):
        target = getattr(module, name)
        error = isinstance(target, type) and issubclass(target, BaseException)
        if callable(target) and not error and name not in LEFT_OUT and name[:8] != "__loader":
            found.append(name)
    return found


ROWS = [(module, name) for module in MODULES for name in names(module)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("module", "name"), ROWS, ids=lambda each: getattr(each, "__name__", each))
def test_functions(module: ModuleType, name: str) -> None:
    operands = [*calls.operands_of(module.__name__, name), *MODULES[module]]
    prefix = "" if module is builtins else f"{module.__name__}."
    made = [f"{prefix}{name}({one})" for one in operands if fits(name, one)]
    text = calls.written([RECEIVER], made)
    function = calls.program(f"import {module.__name__}\n{text}", f"{module.__name__}.{name}")
    outcome = check_scenario(lambda: Scenario(function, [call(X)]))
    reasons = {reason.split(":")[0] for reason in outcome.reasons}
    assert reasons <= ALWAYS | MAY_BREAK.get(name, set()), outcome.reasons


def fits(name: str, operands: str) -> bool:
    """Leave out numbers that a function would count up to."""
    if name == "hash" and "Nothing" in operands:
        return False  # its address
    return "2**65" not in operands or name not in ("pow", "ipow", "factorial", "perm", "comb")


def operators() -> list[Any]:
    """Every operator on every pair of objects of the built-in types, beginning with one."""
    values = [receivers[0] for receivers in calls.RECEIVERS.values() if "array" not in receivers[0]]
    return [*values, "None", "int", "'x'", "0", "0.0", "Nothing()"]


BINARY = "+ - * / // % ** @ & | ^ << >> == != < <= > >= in is".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("left", operators())
def test_operators(left: str) -> None:
    made = [f"a {sign} {right}" for right in operators() for sign in BINARY]
    made += [f"{sign} a" for sign in ("-", "+", "~", "not")]
    lines = calls.written([left], made).splitlines()
    for right in operators():
        for sign in BINARY[:13]:
            lines[-1:-1] = [f"    a = {left}", "    try:", f"        a {sign}= {right}"]
            lines[-1:-1] = ["        found.append(a)", "    except Exception as error:"]
            lines[-1:-1] = ["        found.append((type(error), say(error)))"]
    function = calls.program("\n".join(lines), f"operators of {left}")
    outcome = check_scenario(lambda: Scenario(function, [call(X)]))
    allowed = ALWAYS | ({"warning"} if left == "True" else set())  # of ~True, since 3.12
    assert {reason.split(":")[0] for reason in outcome.reasons} <= allowed, outcome.reasons

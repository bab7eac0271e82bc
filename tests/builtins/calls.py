"""Calls of everything that `dir()` names, with operands of every kind: the text of the programs.

Nothing here says which call is right: each is made with all operands, and eager Python says what
it gives, what it refuses and with which words.
"""

import linecache
import os
import zlib
from collections.abc import Callable, Sequence
from typing import Any

EVERYTHING = "DYNACAP_FUZZ_MINUTES" in os.environ  # else every second operand
# type -> objects of it, as text; those of the first column are what the suite takes first
RECEIVERS: dict[str, list[str]] = {
    "int": ["5", "-3", "0", "2**70", "True"],
    "bool": ["True", "False"],
    "float": ["2.5", "-0.0", "float('nan')", "float('inf')"],
    "complex": ["1+2j", "-0j"],
    "str": ["'abcab'", "''", "'Ab \\u00df\\n1'", "'7'"],
    "bytes": ["b'abcab'", "b''", "b' A1\\n'"],
    "bytearray": ["bytearray(b'abcab')", "bytearray()"],
    "list": ["[3, 1, 2, 1]", "[]", "['b', 'a', 'b']", "[1, 'a', None]"],
    "tuple": ["(3, 1, 2, 1)", "()", "('b', 'a')", "(1, [2])"],
    "dict": ["{'a': 1, 'b': 2}", "{}", "{1: 'x', 0: 'y'}", "{'a': [1]}"],
    "set": ["{1, 2, 3}", "set()", "{'a'}"],
    "frozenset": ["frozenset({1, 2, 3})", "frozenset()", "frozenset('a')"],
    "range": ["range(1, 9, 3)", "range(0)", "range(2**65)", "range(5, 0, -2)"],
    "slice": ["slice(1, 5, 2)", "slice(None)", "slice('a', None, [1])"],
}
# operands of one call, as text; `a` is the receiver
OPERANDS: list[str] = [
    "", "0", "1", "-1", "2", "2.5", "1j", "True", "'a'", "''", "b'a'", "None",
    "[1, 2]", "(1, 'a')", "(2, 1)", "()", "{'a': 3}", "{1, 2}", "frozenset({1})", "range(3)",
    "slice(0, 2)", "slice(None, None, -1)", "int", "list", "Nothing()", "iter([1, 2])", "...", "a",
    "[('a', 5)]", "2**65", "0, 1", "1, 2", "1, 'a'", "-2, None", "'a', 'b'", "b'a', b'b'",
    "'b', 1", "0, [7]", "slice(0, 1), [7, 8]", "slice(0, 4, 2), (7, 8)", "slice(0, 4, 2), [7]",
    "[1], {2}", "{'a': 1}, c=2", "'a', 0, 2", "1, 0, 9", "b'a', 1, 3", "'a', 'b', 'c'",
    "1, 2, 3, 4, 5", "bad=1", "key=None", "default=0", "'utf-8'", "'__len__'", "'nothing'",
]  # fmt: skip
TENSORS = ["x", "x[0]", "[x]", "(x, 1)", "x, x", "1, x", "{'a': x}", "x.shape"]
# what only some ask for
SPECIAL: dict[str, list[str]] = {
    "to_bytes": ["2, 'big'", "2, 'little', signed=True", "0, 'big'", "2, 'middle'", "length=9"],
    "from_bytes": ["b'ab', 'big'", "[1, 2], 'little', signed=True", "b'', byteorder='big'"],
    "fromhex": ["'0x1.8p1'", "'ff 00'", "'0xzz'"],
    "hex": ["':'", "':', 2", "sep='-', bytes_per_sep=1"],
    "translate": ["{97: 'z', 98: None}", "bytes(range(256))", "None, b'a'", "{97: 2**30}"],
    "maketrans": ["{'a': 'b'}", "'ab', 'cd', 'e'", "b'ab', b'cd'", "'ab', 'c'", "{'ab': 1}"],
    "format": ["1, b=2", "*[1], **{'k': 2}"],
    "__format__": ["'>8'", "'x'", "'.2f'", "'s'", "','", "'08.1e'", "'q'"],
    "format_map": ["{}", "{'k': 1}"],
    "encode": ["'ascii', 'replace'", "'latin-1'", "'nonsense'", "encoding='utf-16'"],
    "decode": ["'ascii', 'replace'", "'latin-1'", "'nonsense'", "errors='ignore'"],
    "join": ["['p', 'q']", "[b'p', b'q']", "iter('pq')", "{'p': 1}", "['p', 1]"],
    "split": ["None, 1", "sep=None, maxsplit=1", "'b', maxsplit=-1", "b'b', 1", "','"],
    "rsplit": ["None, 1", "sep='b', maxsplit=1", "b'b', 1"],
    "splitlines": ["True", "keepends=True"],
    "expandtabs": ["tabsize=4"],
    "startswith": ["('a', 'b')", "'a', 1", "(b'a',)", "(1,)"],
    "endswith": ["('a', 'b')", "'b', 1", "(b'b',)", "'b', 0, 1"],
    "sort": ["reverse=True", "key=lambda v: -v", "key=len", "key=str, reverse=1", "key=5"],
    "update": ["[('a', 5), ('c', 6)]", "c=1", "[('a',)]", "[1]", "{}, {1}, [2]", "{1: 2}, z=3"],
    "fromkeys": ["'ab', 1", "[1, [2]]", "[[]]"],
    "pop": ["'zz'", "'zz', None", "[]", "9"],
    "setdefault": ["'zz', []", "[]"],
    "get": ["'zz', []", "[]", "'a', 9"],
    "is_integer": ["1"],
    "__pow__": ["3, 7", "-1", "0.5", "-1, 7", "2, 0"],
    "__rpow__": ["3, 7"],
    "__round__": ["2", "-1", "None", "400"],
    "__new__": ["type(a)", "type(a), '12', 7", "object", "type(a), 'k'"],
    "__class__": ["'12', 7", "'k'", "[('k', 1)], v=2", "b'x', 'ascii'", "real=1", "key=1"],
    "__getattribute__": ["'__class__'", "'__doc__'"],
    "__setattr__": ["'p', 1", "'__class__', int", "1, 2"],
    "__delattr__": ["'p'", "'__class__'"],
    "__reduce_ex__": ["2", "4", "0"],
    "__subclasshook__": ["int"],
}
PRELUDE = """
def say(error):
    # Python names a method by itself or by its object, as the call is written: not kept at a break
    text = str(error)
    return text[text.find(".") + 1 :] if text.endswith("takes no keyword arguments") else text

class Nothing:
    def __repr__(self): return "a nothing"
"""
SPACE: dict[str, Any] = {}
exec(PRELUDE, SPACE)


def program(text: str, name: str) -> Callable[..., Any]:
    """The function called `function` in the text."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = dict(SPACE, __name__="calls")
    exec(compile(text, file, "exec"), space)
    return space["function"]  # type: ignore[no-any-return]


def written(receivers: Sequence[str], calls: Sequence[str]) -> str:
    """A program that makes each call on a receiver of its own, all of them written in it."""
    lines = ["def function(x):", "    found = []"]
    for receiver in receivers:
        for made in calls:
            lines += [f"    a = {receiver}", *attempt(made)]
    return "\n".join([*lines, "    return x + 1, found", ""])


def given(name: str, calls: Sequence[tuple[Any, tuple[Any, ...], dict[str, Any]]]) -> str:
    """A program that makes calls with receivers and operands which it is given."""
    lines = ["def function(x, given):", "    found = []"]
    for index, (_, args, kwargs) in enumerate(calls):
        names = [f"p{place}" for place in range(len(args))]
        operands = ", ".join([*names, *(f"{key}=kwargs[{key!r}]" for key in kwargs)])
        lines.append(f"    a, ({''.join(each + ', ' for each in names)}), kwargs = given[{index}]")
        lines += attempt(f"a.{name}({operands})")
    return "\n".join([*lines, "    return x + 1, found", ""])


def attempt(made: str) -> list[str]:
    """The lines that make one call and note what it gave or raised, and what became of `a`."""
    return [
        "    try:",
        f"        found.append(({made}, a))",
        "    except Exception as error:",
        "        found.append((type(error), say(error), a))",
    ]


def operands_of(kind: str, name: str) -> list[str]:
    """The operands that a function or method of this name is called with."""
    found = OPERANDS if EVERYTHING else OPERANDS[zlib.crc32(name.encode()) % 2 :: 2]
    unfit = "2**65" if "pow" in name else "a" if kind == "slice" else None
    return [*(one for one in found if one != unfit), *SPECIAL.get(name, ())]


def evaluated(receiver: str, operands: str, x: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A receiver and the operands of a call as objects."""
    space = dict(SPACE, x=x)
    space["a"] = eval(receiver, space)
    args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({operands})", space)
    return space["a"], args, kwargs

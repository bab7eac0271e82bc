"""Every special method of the language reference, on every kind of class that can define it.

`OPERATIONS` holds expressions that ask for each special method, `KINDS` the classes: each pair is
a small function, captured and compared with eager Python.
"""

import ast
import linecache
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest
import torch

from dynacap.testing import Scenario, call, check_scenario, program
from dynacap.testing.check import NOTHING_TO_CAPTURE

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
BOTH = {*BINARY, "<", "<=", "==", "!=", ">", ">="}
COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}

# special method -> its parameters after self, and what it returns
METHODS: dict[str, tuple[str, str]] = {
    "repr": ("", "'repr'"),
    "str": ("", "'str'"),
    "bytes": ("", "b'bytes'"),
    "format": ("spec", "'format ' + spec"),
    "hash": ("", "42"),
    "bool": ("", "False"),
    "len": ("", "3"),
    "length_hint": ("", "5"),
    "getitem": ("key", "('getitem', key) if key != 2 else stop()"),
    "contains": ("item", "item == 7"),
    "iter": ("", "iter((1, 2))"),
    "reversed": ("", "iter((2, 1))"),
    "call": ("*args, **kwargs", "(args, kwargs)"),
    "getattr": ("name", "('getattr', name) if not name.startswith('_') else absent(name)"),
    "complex": ("", "1j"),
    "int": ("", "7"),
    "float": ("", "7.5"),
    "index": ("", "1"),
    "round": ("*digits", "('round', digits)"),
    "trunc": ("", "'trunc'"),
    "floor": ("", "'floor'"),
    "ceil": ("", "'ceil'"),
    "abs": ("", "'abs'"),
    "neg": ("", "'neg'"),
    "pos": ("", "'pos'"),
    "invert": ("", "'invert'"),
    "divmod": ("other", "('divmod', show(other))"),
    "rdivmod": ("other", "('rdivmod', show(other))"),
    "enter": ("", "'entered'"),
    "exit": ("*error", "True"),
    "dir": ("", "['b', 'a']"),
    "copy": ("", "'copied'"),
    "deepcopy": ("memo", "'deeply copied'"),
    "instancecheck": ("obj", "obj == 1"),
    "subclasscheck": ("cls", "cls is int"),
    "fspath": ("", "'path'"),
    **{name: ("other", f"('{name}', show(other))") for name in BINARY.values()},
    **{f"r{name}": ("other", f"('r{name}', show(other))") for name in BINARY.values()},
    **{f"i{name}": ("other", f"('i{name}', show(other))") for name in BINARY.values()},
    **{name: ("other", f"('{name}', show(other))") for name in COMPARE.values()},
}
# what they are given is kept in a list of the module: not every object has room of its own
STATEMENTS = {
    "setitem": "key, value",
    "delitem": "key",
    "setattr": "name, value",
    "delattr": "name",
}
OPERATIONS: dict[str, str] = {
    "repr": "repr(a), f'{a!r}', '%r' % (a,), [a].__repr__(), ascii(a)",
    "str": "str(a), f'{a!s}', '%s' % (a,)",
    "bytes": "bytes(a)",
    "format": "format(a, 'x'), f'{a}', f'{a:>5}', '{:y} {}'.format(a, a)",
    "hash": "hash(a), hash((a, 1)) == hash((42, 1)) or type(a).__hash__ is None",
    "dict key": "{a: 1}[a], a in {a}, {1: 2}.get(a)",
    "bool": "bool(a), not a, 1 if a else 2, a and 1, a or 2, [v for v in (a, 1) if v], any((a,))",
    "len": "len(a), operator.length_hint(a)",
    "getitem": "a[1], a['k'], a[0:2], a[1, 2], operator.getitem(a, 1), operator.itemgetter(1)(a)",
    "setitem": "a.__setitem__(1, 2), operator.setitem(a, 3, 4), LOG[-2:]",
    "delitem": "operator.delitem(a, 1), LOG[-1]",
    "contains": "7 in a, 8 in a, 8 not in a, operator.contains(a, 7)",
    "iter": "list(a), tuple(a), [*a], (lambda *args: args)(*a), dict(zip(a, a)), max(a), sum(a)",
    "unpack": "(lambda p, q: (q, p))(*a), [p for p in a], {p for p in a}",
    "reversed": "list(reversed(a))",
    "call": "a(), a(1, k=2), a(*[1], **{'m': 3}), callable(a), list(map(a, [1]))",
    "getattr": "a.missing, getattr(a, 'b'), getattr(a, '_no', 3), hasattr(a, '_n')",
    "setattr": "setattr(a, 'p', 1), LOG[-1]",
    "delattr": "delattr(a, 'p'), LOG[-1]",
    "complex": "complex(a)",
    "int": "int(a), '%d' % a, round(1.5)",
    "float": "float(a), '%.1f' % a, math.sqrt(a), math.floor(1.5)",
    "index": "operator.index(a), [1, 2, 3][a], hex(a), range(5)[a], 'abc'[a:], [0] * a, chr(a)",
    "round": "round(a), round(a, 2), round(a, ndigits=None)",
    "trunc": "math.trunc(a), math.floor(a), math.ceil(a)",
    "abs": "abs(a), -a, +a, ~a, operator.neg(a), operator.abs(a)",
    "divmod": "divmod(a, 1), divmod(1, a), divmod(object, a)",
    "with": "manage(a)",
    "dir": "dir(a)",
    "copy": "copy.copy(a), copy.deepcopy(a)",
    "isinstance": "isinstance(1, a), isinstance(2, a), issubclass(int, a), isinstance(3, (a, str))",
    "fspath": "os.fspath(a)",
    "pow": "pow(a, 2), pow(2, a)",
    "sort": "sorted([a, a]), min(a, a), max([a], default=1)",
    **{f"binary {s}": f"a {s} 1, a {s} x, None {s} a, 'text' {s} a, a {s} a" for s in BINARY},
    "tensor operand": "x + a, x * a, x - a, x @ a, x == a, x < a, x & a",
    **{f"in place {s}": f"inplace_{n}(a, 1), inplace_{n}([1], a)" for s, n in BINARY.items()},
    **{
        f"compare {s}": f"a {s} 1, 1 {s} a, a {s} a, operator.{n}(a, 'k'), (a, 1) {s} (1, 1)"
        for s, n in COMPARE.items()
    },
}

PRELUDE = """
import copy, math, operator, os, torch
LOG = []
def show(v): return v if type(v) in (int, str, type(None)) else type(v).__name__
def stop(): raise IndexError("stop")
def absent(name): raise AttributeError(name)
def manage(a):
    with a as entered:
        raise KeyError("swallowed")
    return entered
"""
for _symbol, _name in BINARY.items():
    PRELUDE += f"def inplace_{_name}(a, b):\n    a {_symbol}= b\n    return a\n"


def methods(indent: str = "    ", leave_out: str = "") -> str:
    """The text of all special methods."""
    lines = [
        f"{indent}def __{name}__(self{', ' + params if params else ''}): return {result}"
        for name, (params, result) in METHODS.items()
        if name not in leave_out.split()
    ]
    lines += [
        f"{indent}def __{name}__(self, {params}): LOG.append(('{name}', {params}))"
        for name, params in STATEMENTS.items()
        if name not in leave_out.split()
    ]
    return "\n".join(lines)


ALL = methods()


def each(names: Iterable[str], parameters: str, body: str, indent: str = "    ") -> str:
    """The text of these special methods, which all do the same."""
    return "\n".join(f"{indent}def __{n}__({parameters}): {body.format(n)}" for n in names)


NUMERIC = [*BINARY.values(), *(p + name for p in "ri" for name in BINARY.values())]
SHOWN = ("getattr", "dir", "repr", "str", "format", "hash", "copy", "deepcopy")
HIDDEN = [name for name in METHODS if name not in SHOWN]
NONES = "\n".join(f"    __{name}__ = None" for name in HIDDEN)
ASSIGNED = "\n".join(f"        self.__{name}__ = lambda *a: '{name}'" for name in HIDDEN)
BUILT_IN = {
    "int": "5", "float": "5.5", "str": "'five'", "list": "[5, 6]", "dict": "{'p': 5}",
    "tuple": "(5, 6)", "set": "(5, 6)",
}  # fmt: skip
# kind -> the class, and an object of it
KINDS: dict[str, tuple[str, str]] = {
    "plain": (f"class A:\n{ALL}", "A()"),
    "inherited": (f"class Base:\n{ALL}\nclass Mid(Base): pass\nclass A(Mid): pass", "A()"),
    "second base": (f"class One: pass\nclass Base:\n{ALL}\nclass A(One, Base): pass", "A()"),
    "slots": (f"class A:\n    __slots__ = ('v',)\n{ALL}", "A()"),
    "metaclass": (f"class M(type):\n{methods(leave_out='call')}\nclass A(metaclass=M): pass", "A"),
    **{kind: (f"class A({kind}):\n{ALL}", f"A({made})") for kind, made in BUILT_IN.items()},
    "nothing": ("class A: pass", "A()"),
    "nones": (f"class A:\n{NONES}", "A()"),
    **{f"bare {kind}": (f"class A({kind}): pass", f"A({made})") for kind, made in BUILT_IN.items()},
    "not implemented": (
        f"class A:\n{each([*NUMERIC, *COMPARE.values()], 'self, *a', 'return NotImplemented')}",
        "A()",
    ),
    "raising": (f"class A:\n{each(HIDDEN, 'self, *a, **k', 'raise LookupError({!r})')}", "A()"),
    "attributes": (f"class A:\n    def __init__(self):\n{ASSIGNED}", "A()"),
}
# The text of these shows their address, and torch itself fails on lists that lie about themselves.
ADDRESSES = {"nothing", "nones", "not implemented", "raising", "attributes"}
LEFT_OUT = {
    "repr": ADDRESSES, "str": ADDRESSES, "format": ADDRESSES, "hash": ADDRESSES,
    "tensor operand": {"list", "tuple"},
}  # fmt: skip
# Operations that are captured together, and why capture stops in those that stand alone.
BREAKS = {
    "dir": {"frame-introspection"},
    "copy": {"own-copy"},
    "binary @": {"fake-tensor-error"},
    **{f"binary {sign}": {"fake-tensor-error"} for sign in "&|^"},  # of floats
    "binary *": {"data-dependent-value"},
    "tensor operand": {"fake-tensor-error", "data-dependent-value"},
}
GROUPS: dict[str, list[str]] = {}
for _name in OPERATIONS:
    _words = _name.split()
    _group = _name if _name in BREAKS else _words[0] if _words[-1] in BOTH else "others"
    GROUPS.setdefault(_group, []).append(_name)


def build(kind: str, operations: list[str]) -> Callable[..., Any]:
    """The function that does operations on an object of one kind, made inside and outside."""
    definition, made = KINDS[kind]
    found = []
    for operation in operations:
        tree = ast.parse(f"({OPERATIONS[operation]},)", mode="eval").body
        assert isinstance(tree, ast.Tuple)
        parts = ", ".join(f"caught(lambda: {ast.unparse(part)})" for part in tree.elts)
        found.append(f"{operation!r}: [{parts}]")
    text = f"""{PRELUDE}
{definition}
def fresh():
    global GIVEN
    GIVEN = {made}
def caught(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)
def function(x):
    LOG.clear()
    a = {made}
    found = {{{", ".join(found)}}}
    a = GIVEN
    again = {{{", ".join(found)}}}
    return x + 1, found, again
"""
    name = f"<special methods {kind} {operations[0]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": f"special_{kind.replace(' ', '_')}"}
    exec(compile(text, name, "exec"), space)
    return space["function"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", GROUPS)
def test_special_methods(kind: str, group: str) -> None:
    operations = [name for name in GROUPS[group] if kind not in LEFT_OUT.get(name, ())]
    if not operations:
        return
    function = build(kind, operations)
    space = function.__globals__

    def scenario() -> Scenario:
        return Scenario(function, [call(torch.arange(3.0))], before=lambda i: space["fresh"]())

    outcome = check_scenario(scenario)
    reasons = {reason.split(":")[0] for reason in outcome.reasons}
    assert reasons - {NOTHING_TO_CAPTURE} <= BREAKS.get(group, set())


class Watching(type):
    """A metaclass that is told of what is asked of its classes."""

    log: ClassVar[list[Any]] = []

    def __getattribute__(cls, name: str) -> Any:
        if len(name) < 3:
            Watching.log.append(name)
        return super().__getattribute__(name)

    def __getattr__(cls, name: str) -> str:
        if name == "no":
            raise AttributeError("none")
        Watching.log.append(("missing", name))
        return name * 2


class Watched(metaclass=Watching):
    a, b = 1, 2

    @classmethod
    def m(cls) -> int:
        return cls.a


@program((torch.ones(2),), breaks=None)
def test_a_metaclass_is_asked_for_the_attributes_of_a_class(x: torch.Tensor) -> Any:
    Watching.log.clear()
    held = Watched()
    found = [Watched.a, Watched.zz, Watched.m(), held.m(), getattr(Watched, "no", 3)]  # type: ignore[attr-defined]
    try:
        type.__getattribute__(Watched, "yy")
    except AttributeError as error:
        found.append(str(error))
    return x + Watched.b, found, isinstance(held, Watched), Watching.log[:]

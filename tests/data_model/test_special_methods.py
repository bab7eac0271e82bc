"""Every special method of the language reference, on every kind of class that can define it.

`OPERATIONS` names an expression or a statement for each special method; `KINDS` the classes that define
all of them.  Each pair is a small function, captured and compared with eager Python.
"""

import linecache
from collections.abc import Callable
from typing import Any

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
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
# what is written to: kept in a list of the module, since an object may have no room of its own
STATEMENTS = {
    "setitem": "key, value",
    "delitem": "key",
    "set_name": "owner, name",
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
    "getattr": "a.missing, getattr(a, 'other'), getattr(a, '_no', 3), hasattr(a, '_no'), hasattr(a, 'q')",
    "setattr": "setattr(a, 'p', 1), LOG[-1]",
    "delattr": "delattr(a, 'p'), LOG[-1]",
    "complex": "complex(a)",
    "int": "int(a), '%d' % a, round(1.5)",
    "float": "float(a), '%.1f' % a, math.sqrt(a), math.floor(1.5)",
    "index": "operator.index(a), [1, 2, 3][a], hex(a), range(5)[a], 'abc'[a:], list(range(a)), [0] * a, chr(a)",
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
    **{
        f"binary {s}": f"a {s} 1, a {s} x, None {s} a, 'text' {s} a, a {s} a"
        for s in BINARY
    },
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
KINDS: dict[str, tuple[str, str]] = {
    "plain": (f"class A:\n{ALL}", "A()"),
    "inherited": (f"class Base:\n{ALL}\nclass Mid(Base): pass\nclass A(Mid): pass", "A()"),
    "second base": (f"class Base:\n{ALL}\nclass A(dict().__class__.__base__, Base): pass"
                    if False else f"class One: pass\nclass Base:\n{ALL}\nclass A(One, Base): pass", "A()"),
    "slots": (f"class A:\n    __slots__ = ('v',)\n{ALL}", "A()"),
    "metaclass": (f"class Meta(type):\n{methods(leave_out='call')}\nclass A(metaclass=Meta): pass", "A"),
    "int": (f"class A(int):\n{ALL}", "A(5)"),
    "float": (f"class A(float):\n{ALL}", "A(5.5)"),
    "str": (f"class A(str):\n{ALL}", "A('five')"),
    "list": (f"class A(list):\n{ALL}", "A([5, 6])"),
    "dict": (f"class A(dict):\n{ALL}", "A(p=5)"),
    "tuple": (f"class A(tuple):\n{ALL}", "A((5, 6))"),
    "set": (f"class A(set):\n{ALL}", "A((5, 6))"),
    "nothing": ("class A:\n    pass", "A()"),
    "None": (
        "class A:\n" + "\n".join(f"    __{n}__ = None" for n in METHODS if n not in ("getattr", "dir", "repr", "str", "format", "hash")),
        "A()",
    ),
    "bare int": ("class A(int): pass", "A(5)"),
    "bare float": ("class A(float): pass", "A(5.5)"),
    "bare str": ("class A(str): pass", "A('five')"),
    "bare list": ("class A(list): pass", "A([5, 6])"),
    "bare dict": ("class A(dict): pass", "A(p=5)"),
    "bare tuple": ("class A(tuple): pass", "A((5, 6))"),
    "bare set": ("class A(set): pass", "A((5, 6))"),
    "not implemented": (
        "class A:\n" + "\n".join(
            f"    def __{n}__(self, *a): return NotImplemented" for n in METHODS
            if n in COMPARE.values() or n.lstrip("ri") in BINARY.values() or n in BINARY.values()
        ), "A()"),
    "raising": (
        "class A:\n" + "\n".join(
            f"    def __{n}__(self, *a, **k): raise LookupError('{n}')" for n in METHODS
            if n not in ("getattr", "dir", "repr", "str", "format", "hash")
        ), "A()"),
    "instance attributes": (
        "class A:\n    def __init__(self):\n" + "\n".join(
            f"        self.__{n}__ = lambda *a: '{n}'" for n in METHODS
            if n not in ("getattr", "dir", "repr", "str", "format", "hash", "copy", "deepcopy")
        ), "A()"),
}


def build(kind: str, operation: str) -> Callable[..., Any]:
    """The function that does one operation on an object of one kind, made and from outside."""
    definition, made = KINDS[kind]
    body = OPERATIONS[operation]
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
    found = [{", ".join(f"caught(lambda: {part})" for part in split(body))}]
    a = GIVEN
    again = [{", ".join(f"caught(lambda: {part})" for part in split(body))}]
    return x + 1, found, again
"""
    name = f"<special methods {kind} {operation}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": f"special_{abs(hash(name))}"}
    exec(compile(text, name, "exec"), space)
    return space["function"]  # type: ignore[no-any-return]


def split(body: str) -> list[str]:
    """The parts of an expression list."""
    import ast
    tree = ast.parse(f"({body},)", mode="eval").body
    assert isinstance(tree, ast.Tuple)
    return [ast.unparse(part) for part in tree.elts]

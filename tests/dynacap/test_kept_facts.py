"""What no guard says of the program is in the digest of an object, or the entry is not kept.

In each program another module changes between two processes; the file of the function does not.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import dynacap
from dynacap import totals
from dynacap.config import config
from dynacap.testing import check_same
from tests.dynacap.loaded_anew import loaded_anew

Pair = Callable[..., list[int]]
META = "class Meta(type):\n    "


@pytest.fixture
def in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """``in_turn(source, *libraries)``: how many entries of ``f`` are recalled with each library."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    taken: list[None] = []
    monkeypatch.setattr(totals, "add_recalled", lambda: taken.append(None))

    def load(name: str, source: str) -> types.ModuleType:
        path = tmp_path / f"{name}.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        return loaded_anew(path, name)

    def run(source: str, *libraries: str) -> list[int]:
        found = []
        for library in libraries:
            load("kept_library", library)
            module = load("kept_program", "import kept_library as lib\n" + source)
            dynacap.reset()
            taken.clear()
            compiler = functools.partial(dynacap.compile, backend="eager")
            check_same(module.f, (torch.ones(3),), compile=compiler)
            found.append(len(taken))
        return found

    with config.patch(keep_captures=True, cache_dir=str(folder)):
        yield run
    for name in ("kept_library", "kept_program"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        (
            "class A(metaclass=lib.Meta): pass\ndef f(x): return x * (2 + isinstance(3, A))\n",
            "Meta = type\n",
            META + "def __instancecheck__(cls, obj): return True\n",
        ),
        (
            "class A(metaclass=lib.Meta):\n    k = 2.0\ndef f(x): return x * A.k\n",
            "Meta = type\n",
            META + "def __getattribute__(cls, name): return 7.0\n",
        ),
        (
            "import enum\nE = enum.Enum('E', lib.names)\n"
            "def f(x):\n    for e in E: x = x * 2 + e.value\n    return x\n",
            "names = 'a b'\n",
            "names = 'a b c'\n",
        ),
        (
            "import enum\nE = enum.Enum('E', lib.names)\ndef f(x): return x * len(E)\n",
            "names = 'a b'\n",
            "names = 'a b c'\n",
        ),
        (
            "import enum\nclass E(enum.Enum):\n    A = lib.v\ndef f(x): return x * E.A.value\n",
            "v = 2\n",
            "v = 3\n",
        ),
        (
            "import enum\nclass E(enum.IntEnum):\n    A = lib.v\n    B = 5\n"
            "def f(x): return x * (E(5).name == 'B') + E['A']\n",
            "v = 2\n",
            "v = 5\n",
        ),
        (
            "import dataclasses\nD = dataclasses.make_dataclass('D', lib.names)\n"
            "D.__module__ = __name__\n"
            "def f(x): return x * len(dataclasses.fields(D))\n",
            "names = ['a', 'b']\n",
            "names = ['a', 'b', 'c']\n",
        ),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: int = 1\n"
            "    b: int = dataclasses.field(default=2, init=lib.v)\n"
            "def f(x): return x * sum(each.init for each in dataclasses.fields(D))\n",
            "v = True\n",
            "v = False\n",
        ),
        (
            "import dataclasses\nclass D:\n    a: int = 1\n"
            "D = lib.made(D)\ndef f(x): return x * (2 + dataclasses.is_dataclass(D))\n",
            "import dataclasses\nmade = dataclasses.dataclass\n",
            "def made(cls): return cls\n",
        ),
    ],
)
def test_what_is_known_of_a_class(in_turn: Pair, source: str, before: str, after: str) -> None:
    assert in_turn(source, before, before, after) == [0, 1, 0]


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        (
            "import enum\nclass E(enum.Enum):\n    A = 1\n"
            "    def __init__(self, _): self.weight = lib.v\n"
            "def f(x):\n    for e in E: x = x * e.weight\n    return x\n",
            "v = 2.0\n",
            "v = 3.0\n",
        ),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass D:\n"
            "    a: int = dataclasses.field(default=1, metadata={'k': lib.v})\n"
            "def f(x): return x * dataclasses.fields(D)[0].metadata['k']\n",
            "v = 2.0\n",
            "v = 3.0\n",
        ),
        (
            "import abc\nclass P(abc.ABC): pass\nclass A: pass\nlib.tell(P, A)\n"
            "def f(x): return x * isinstance(A(), P)\n",
            "def tell(base, cls): base.register(cls)\n",
            "def tell(base, cls): pass\n",
        ),
        (
            "import abc\nclass P(abc.ABC): pass\nclass A: pass\nlib.tell(P, A)\n"
            "def f(x): return x * issubclass(A, P)\n",
            "def tell(base, cls): base.register(cls)\n",
            "def tell(base, cls): pass\n",
        ),
        (
            "import inspect\ndef g(x: lib.v): pass\n"
            "def f(x): return x * (inspect.signature(g).parameters['x'].annotation is int)\n",
            "v = int\n",
            "v = float\n",
        ),
        ("def f(x): return x + hash(frozenset(('a', 'b'))) % 7\n", "", ""),
    ],
)
def test_what_nothing_tells(in_turn: Pair, source: str, before: str, after: str) -> None:
    assert in_turn(source, before, before, after) == [0, 0, 0]


def test_functions_that_make_objects(in_turn: Pair) -> None:
    """The function in ``__new__`` is found from its class, and so is what it reads."""
    source = "class A:\n    __new__ = lib.new\ndef f(x): return x * A().v\n"
    library = (
        "def make(k):\n    def new(cls):\n        self = object.__new__(cls)\n"
        "        self.v = k[0]\n        return self\n    return new\nk = [{}]\nnew = make(k)\n"
    )
    one, other = library.format(2.0), library.format(3.0)
    assert in_turn(source, one, one, other) == [0, 1, 0]


def test_a_class_that_is_not_registered_yet(in_turn: Pair) -> None:
    source = """
import abc
class Base(abc.ABC): pass
class A: pass
lib.tell(Base, A)
def f(x): return x * (2 + isinstance(A(), Base))
"""
    silent, telling = "def tell(*_): pass\n", "def tell(base, cls): base.register(cls)\n"
    assert in_turn(source, silent, silent, telling, silent) == [0, 1, 0, 1]


def test_what_an_enum_holds_that_may_change(in_turn: Pair) -> None:
    library = (
        "import enum\nclass E(enum.Enum):\n    A = 1\n    def __init__(self, n): self.of = [{}]\n"
    )
    read, not_read = "x * lib.E.A.of[0]", "x * (2 if k is lib.E.A else 3)"
    for expression, times in ((read, 0), (not_read, 1)):
        source = f"def f(x, k=lib.E.A): return {expression}\n"
        assert in_turn(source, library.format(2), library.format(2)) == [0, times]
        in_turn(source, library.format(5))

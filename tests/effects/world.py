"""What the changes are made to: an object of every kind that a program can leave a mark on."""

import types
from typing import Any

from dynacap import disable
from dynacap.testing import Branch, snapshot

TEXT = """
import array, collections, contextvars, dataclasses, decimal, functools, io, itertools, logging
import operator, os, random, sys, types, warnings, weakref
import numpy as np
import torch
from torch import nn

notes = []

class Box:
    made = 0
    table = {}
    names = []
    def __init__(self, value=0):
        self.value = value
        self.kids = []

class SubBox(Box):
    pass

class Slots:
    __slots__ = ("left", "right")
    def __init__(self):
        self.left = 1

class Told:
    # Every change of an attribute is told, in order.
    def __init__(self):
        object.__setattr__(self, "value", 0)
    def __setattr__(self, name, value):
        notes.append(("set", name))
        object.__setattr__(self, name, value)
    def __delattr__(self, name):
        notes.append(("del", name))
        object.__delattr__(self, name)

class Managed:
    def __init__(self):
        self._value = 1
    @property
    def value(self):
        notes.append("read")
        return self._value
    @value.setter
    def value(self, new):
        notes.append(("written", new))
        self._value = new
    @value.deleter
    def value(self):
        notes.append("deleted")
        self._value = None

class Field:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, obj, owner):
        return self if obj is None else getattr(obj, self.name, None)
    def __set__(self, obj, value):
        notes.append((self.name, value))
        setattr(obj, self.name, value)

class Typed:
    field = Field()

class Items(list):
    tag = "class"

class Table(dict):
    def __missing__(self, key):
        self[key] = key * 2
        return self[key]

class Heavy(collections.UserDict):
    pass

class Meta(type):
    def __setattr__(cls, name, value):
        notes.append(("class", name))
        super().__setattr__(name, value)

class Watched(metaclass=Meta):
    level = 1

class Dies:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        notes.append(("died", self.name))

class Shout:
    def __init__(self, name):
        self.name = name
    def __eq__(self, other):
        notes.append(("eq", self.name))
        return isinstance(other, Shout) and self.name == other.name
    def __hash__(self):
        notes.append(("hash", self.name))
        return hash(self.name)

class Inplace:
    def __init__(self):
        self.log = []
    def __iadd__(self, other):
        self.log.append(other)
        return self
    def __setitem__(self, key, value):
        self.log.append((key, value))
    def __getitem__(self, key):
        self.log.append(key)
        return key
    def __delitem__(self, key):
        self.log.append(("del", key))

@dataclasses.dataclass
class Record:
    count: int = 0
    seen: list = dataclasses.field(default_factory=list)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("steps", torch.zeros(1))
        self.calls = 0
        self.seen = []
    def forward(self, x):
        return self.first(x)

def make_cells():
    inside, log = 5, []
    def bump(by):
        nonlocal inside
        inside += by
        log.append(inside)
        return inside
    def forget():
        nonlocal inside
        del inside
        inside = 1
    return bump, forget

def echo():
    got = "start"
    while True:
        got = yield got
        notes.append(("got", got))

def countdown(n):
    try:
        while n:
            yield n
            n -= 1
    finally:
        notes.append("countdown over")

class Handler(logging.Handler):
    def emit(self, record):
        notes.append((record.levelname, record.getMessage()))

def look():
    seen.append(look_at())

torch.manual_seed(3)
random.seed(3)
seen = []
number, text, gone, typed_number = 1, "text", "here", 1
items, other, nested = [3, 1, 2], [9], [[1], [2, [3]]]
table, deep = {"a": 1, "b": 2}, {"k": {"z": [1]}}
group, frozen = {1, 2, 3}, frozenset([1])
queue, limited = collections.deque([1, 2, 3]), collections.deque([1, 2], 2)
ordered = collections.OrderedDict(a=1, b=2, c=3)
falls, counts = collections.defaultdict(list, a=[1]), collections.Counter("aab")
chain = collections.ChainMap({"a": 1}, {"b": 2})
numbers, raw, doubles = array.array("i", [1, 2, 3]), bytearray(b"abc"), array.array("d", [1.0])
view = memoryview(raw)
own_items, own_table, heavy = Items([1, 2]), Table(a=1), Heavy(a=1)
box, twin, slots, told, managed, typed = Box(1), Box(1), Slots(), Told(), Managed(), Typed()
record, inplace, watched = Record(), Inplace(), Watched()
bump, forget = make_cells()
talk, count_down, walk, numbered = echo(), countdown(4), iter(range(9)), enumerate("abcdef")
next(talk)
list_walk, dict_walk, counting = iter(items), iter(table), itertools.count(3)
cycle = itertools.cycle("ab")
zipped, mapped, filtered = zip(items, "abc"), map(str, [5, 6, 7]), filter(None, [0, 1, 0, 2])
holder = types.SimpleNamespace(value=1)
module = types.ModuleType("made")
module.level = 1
var = contextvars.ContextVar("var", default=0)
dice, np_dice = random.Random(7), np.random.default_rng(7)
torch_dice = torch.Generator().manual_seed(7)
old_dice = np.random.RandomState(7)
log = logging.getLogger("effects.made")
log.handlers, log.propagate, log.level = [Handler()], False, 10
t, u = torch.arange(6.0).reshape(2, 3), torch.ones(3)
row, column, flat, same = t[0], t[:, 1], t.view(-1), t
leaf = torch.ones(3, requires_grad=True)
whole = torch.arange(4)
arr = np.arange(6.0).reshape(2, 3)
arr_row, arr_t = arr[0], torch.from_numpy(arr)
net = Net()
shouted = {Shout("a"): 1}
@functools.lru_cache
def cached(n):
    notes.append(("computed", n))
    return n + 1
def func(k=1):
    return k
func.calls = 0
out = io.StringIO()
os.environ["DYNACAP_EFFECT"] = "before"
"""

HIDDEN = frozenset({"seen", "look", "look_at", "program", "inner", "parts", "log", "var"})
ITERATORS = (
    "walk", "numbered", "list_walk", "dict_walk", "counting", "cycle", "zipped", "mapped",
    "filtered", "talk", "count_down",
)  # fmt: skip


class World:
    """A fresh world with a program in it; `looked_at` are the names that the program may touch."""

    def __init__(self, program: str, looked_at: frozenset[str]) -> None:
        self.looked_at = looked_at
        self.space: dict[str, Any] = {"look_at": disable(self.look), "__name__": "world"}
        exec(compile(TEXT, "<world>", "exec"), self.space)
        exec(compile(program, "<program>", "exec"), self.space)

    def everything(self) -> dict[str, Any]:
        """All of the world's objects that can be compared."""
        found = {
            name: value
            for name, value in self.space.items()
            if name not in HIDDEN
            and not name.startswith("__")
            and not (isinstance(value, types.ModuleType) and value.__name__ != "made")
        }
        found["module"] = dict(vars(self.space["module"]))
        found["var"] = self.space["var"].get()
        found["environment"] = self.space["os"].environ.get("DYNACAP_EFFECT")
        found["level"] = self.space["log"].level
        if "warnings" in self.looked_at:
            found["warnings"] = list(self.space["warnings"].filters)
        return found

    def touched(self) -> dict[str, Any]:
        """The objects that the program names."""
        return {k: v for k, v in self.everything().items() if k in self.looked_at or k == "notes"}

    def look(self) -> Branch:
        """A description of what the program names, as it is now."""
        return Branch("world", snapshot(**self.touched()))

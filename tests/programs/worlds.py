"""Programs that read a world, and changes to that world between their calls.

A compiled program must notice each change that plain Python would. `make` picks what is read and
what is changed from a source of choices, and returns the text of the program and the changes.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch

Choose = Callable[[int], int]  # a number below the one given

WORLD = """
import collections
import enum
import functools
import math

import torch

SCALE = 2.0
TABLE = {"a": 1, "c": 3}
NAMES = [1, 2]
FLAGS = {1}
NESTED = {"k": [{"z": 1}]}
ORDER = collections.OrderedDict(a=1, b=2)
QUEUE = collections.deque([1, 2])
WEIGHT = torch.ones(2)

class Mode(enum.Enum):
    LOW = 1
    HIGH = 2

MODE = Mode.LOW

class Base:
    rate = 2

    def inherited(self, x):
        return x + self.rate

class Item(Base):
    def __init__(self, value):
        self.value = value
        self.kids = []
        self.flag = None
        self.pair = (1, 2)
        self.name = "item"
        self.call = abs

    @property
    def size(self):
        return self.value * 10

    def method(self, x):
        return x * self.value

class Other(Item):
    rate = 7

    def method(self, x):
        return x - self.value

class Slots:
    __slots__ = ("left",)

    def __init__(self):
        self.left = 1

class Falls:
    def __init__(self):
        self.known = {"deep": 1}

    def __getattr__(self, name):
        return self.__dict__["known"].get(name, "nothing")

thing, twin, slots, falls = Item(3), Item(3), Slots(), Falls()
thing.kids = [Item(1), Item(2)]
thing.call = lambda x: x + 1

def helper(x):
    return x + 1

def other_helper(x):
    return x - 1

def default(k=1):
    return k

def keyword(*, k=1):
    return k

def make_cell():
    inside = 5

    def read():
        return inside

    def write(value):
        nonlocal inside
        inside = value

    return read, write

read_cell, write_cell = make_cell()
bound = thing.method
part = functools.partial(torch.add, alpha=2)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
"""

READS = (
    "SCALE",
    "x * SCALE",
    "TABLE['a']",
    "len(TABLE)",
    "list(TABLE)",
    "list(TABLE.values())",
    "TABLE.get('b', 'no b')",
    "'b' in TABLE",
    "sorted(TABLE.items())",
    "dict(TABLE, z=1)",
    "NAMES[0]",
    "len(NAMES)",
    "sum(NAMES)",
    "[n * 2 for n in NAMES]",
    "NAMES == [1, 2]",
    "2 in NAMES",
    "1 in FLAGS",
    "len(FLAGS)",
    "NESTED['k'][0]['z']",
    "next(iter(ORDER))",
    "list(ORDER.items())",
    "QUEUE[0]",
    "len(QUEUE)",
    "WEIGHT + x",
    "WEIGHT.shape",
    "WEIGHT.dtype",
    "WEIGHT.requires_grad",
    "WEIGHT is thing",
    "MODE is Mode.LOW",
    "MODE.name",
    "Item.rate",
    "thing.rate",
    "thing.inherited(x)",
    "thing.value",
    "thing.size",
    "thing.method(x)",
    "Item.method(thing, x)",
    "super(Item, thing).inherited(x)",
    "thing.call(x)",
    "bound(x)",
    "part(x, x)",
    "thing.kids[0].value",
    "[kid.value for kid in thing.kids]",
    "len(thing.kids)",
    "thing.kids is NAMES",
    "thing.kids[-1] is thing.kids[0]",
    "thing.flag is None",
    "'set' if thing.flag else 'unset'",
    "thing.pair[-1]",
    "thing.name + '!'",
    "f'{thing.name}-{SCALE}'",
    "getattr(thing, 'maybe', 'absent')",
    "hasattr(thing, 'maybe')",
    "sorted(vars(thing))",
    "isinstance(thing, Other)",
    "type(thing).__name__",
    "thing == twin",
    "thing is twin",
    "slots.left",
    "falls.deep",
    "falls.missing",
    "helper(x)",
    "default()",
    "keyword()",
    "read_cell()",
    "net(x)",
    "net.training",
    "len(net)",
    "[type(m).__name__ for m in net]",
    "sum(p.numel() for p in net.parameters())",
    "net[0].weight.sum()",
    "net[0].weight.requires_grad",
    "math.tau > 6",
    "torch.is_grad_enabled()",
    "torch.get_default_dtype()",
    "torch.ones(1).dtype",
    "(x + WEIGHT.sum()).requires_grad",
    "[kid.method(x) for kid in thing.kids]",
    "functools.reduce(lambda a, b: a + b, NAMES, 0)",
    "max(NAMES, default=None)",
    "callable(thing.flag)",
)

CHANGES = (
    "SCALE = 2.5",
    "SCALE = 3",
    "SCALE = True",
    "TABLE['a'] = 5",
    "TABLE['b'] = 9",
    "TABLE.pop('b', None)",
    "TABLE = {'a': 1, 'c': 3}",
    "TABLE = dict(reversed(list(TABLE.items())))",
    "NAMES.append(4)",
    "NAMES[0] = 7",
    "NAMES[0] = 1.0",
    "NAMES = [1, 2]",
    "NAMES = (1, 2)",
    "NAMES.clear()\nNAMES.append(1)",
    "FLAGS.add(2)",
    "FLAGS.discard(1)",
    "NESTED['k'][0]['z'] += 1",
    "NESTED['k'].insert(0, {'z': 'new'})",
    "ORDER.move_to_end('a')",
    "QUEUE.appendleft(9)",
    "WEIGHT = torch.zeros(2)",
    "WEIGHT = WEIGHT.double()",
    "WEIGHT = torch.ones(1)",
    "WEIGHT.add_(1) if not WEIGHT.requires_grad else None",
    "WEIGHT = WEIGHT.detach().requires_grad_()",
    "MODE = Mode.HIGH",
    "Item.rate = 9",
    "Base.rate = 4",
    "thing.rate = 6",
    "vars(thing).pop('rate', None)",
    "thing.value += 1",
    "thing.value = 3.0",
    "thing.kids.append(Item(5))",
    "thing.kids[0].value = 8",
    "thing.kids[0] = thing.kids[-1]",
    "thing.kids = NAMES",
    "thing.kids = [Other(1)]",
    "thing.flag = object()",
    "thing.flag = []",
    "thing.flag = None",
    "thing.pair = (3,)",
    "thing.name = 'renamed'",
    "thing.call = lambda x: x - 5",
    "thing.call = torch.sin",
    "thing.maybe = 1",
    "vars(thing).pop('maybe', None)",
    "thing.__class__ = Other",
    "thing.__class__ = Item",
    "thing.method = lambda x: x * 100",
    "vars(thing).pop('method', None)",
    "Item.method = lambda self, x: x * -1",
    "Item.size = property(lambda self: 'new size')",
    "Item.__eq__ = lambda self, other: True",
    "Item.maybe = 'from the class'",
    "thing = Item(4)",
    "twin = thing",
    "slots.left = 'left'",
    "falls.known['deep'] = 2",
    "falls.missing = 'found'",
    "falls.known = {}",
    "helper = other_helper",
    "helper.__code__ = other_helper.__code__",
    "default.__defaults__ = (5,)",
    "keyword.__kwdefaults__ = {'k': 6}",
    "write_cell(8)",
    "write_cell('text')",
    "part = functools.partial(torch.add, alpha=3)",
    "bound = Other(2).method",
    "net.eval()",
    "net.train()",
    "net[0].weight.data.mul_(2)",
    "net[0].weight = torch.nn.Parameter(torch.ones(2, 2))",
    "net[0].weight.requires_grad_(False)",
    "net.append(torch.nn.ReLU())",
    "net[1] = torch.nn.Identity()",
    "net[0].register_forward_hook(lambda m, i, out: out + 10)",
    "net[0]._forward_hooks.clear()",
    "net.register_forward_pre_hook(lambda m, i: (i[0] * 2,))",
    "net[0].forward = lambda x: x * 3",
    "torch.set_grad_enabled(False)",
    "torch.set_grad_enabled(True)",
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_dtype(torch.float32)",
    "pass",
)


def make(choose: Choose, calls: int = 6) -> tuple[str, list[str]]:
    """The text of a program, and the change to make before each call."""
    reads = [READS[choose(len(READS))] for _ in range(2 + choose(6))]
    lines = [f"    seen.append({read})" for read in reads]
    if choose(3) == 0:
        lines.insert(len(lines) // 2, "    print('half way')")
    body = "\n".join(["    seen = []", *lines, "    return seen, x + 1"])
    changes = ["pass", *(CHANGES[choose(len(CHANGES))] for _ in range(calls - 1))]
    return f"{WORLD}\ndef program(x):\n{body}\n", changes


class World:
    """A loaded program and the names it sees."""

    def __init__(self, text: str, changes: list[str]) -> None:
        restore()
        self.space: dict[str, Any] = {"torch": torch}
        self.changes = changes
        exec(compile(text, "<world>", "exec"), self.space)

    def change(self, index: int) -> None:
        """Make the change that comes before call `index`; one that no longer fits is left out."""
        with contextlib.suppress(Exception):
            exec(compile(self.changes[index], "<change>", "exec"), self.space)


def restore() -> None:
    """Put back the state of torch that the changes may have moved."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)

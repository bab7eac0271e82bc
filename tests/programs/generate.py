"""Make up small programs: statements that nest, break, raise and mutate, from a choice of numbers.

`Writer` turns a source of choices into the text of a function over a tensor `x`, a list `log`, a
dict `box` and an int `n`. Loops are bounded, so each program ends. The text is ordinary Python and
is shown when the program fails.
"""

import textwrap
from collections.abc import Callable
from typing import Any

import torch

Choose = Callable[[int], int]  # a number below the one given

HEADER = """
import contextlib
import functools
import random
import sys

import torch
import torch.nn.functional as F

TOTAL = 0
layer = torch.nn.Linear(3, 3)
with torch.no_grad():
    for p in layer.parameters():
        p.fill_(0.25)

def helper(t, k=1):
    if k > 2:
        raise ValueError(f"k is {k}")
    return t * k + 1

def noisy(t):
    print("noisy", tuple(t.shape))
    return t - 1

def steps(t, count):
    for i in range(count):
        yield t + i

def echo(start):
    got = start
    try:
        while True:
            got = yield got
            if got is None:
                return "ended"
    finally:
        print("echo over", got)

def countdown(t, k):
    return t if k <= 0 else countdown(t + k, k - 1)

def fail(kind):
    if kind == 0:
        return 0
    if kind == 1:
        raise KeyError("one")
    if kind == 2:
        return [][1]
    return 1 / 0

class Thing:
    shared = 0
    def __init__(self, size):
        self.size = size
        self.parts = []
    @property
    def double(self):
        return self.size * 2
    @double.setter
    def double(self, value):
        self.size = value // 2
    def __add__(self, other):
        return Thing(self.size + int(other))
    def __len__(self):
        return self.size
    def __call__(self, t):
        self.parts.append(self.size)
        return t * (self.size + 1)
    def __getitem__(self, at):
        if at > 2:
            raise IndexError(at)
        return at * self.size
    def __eq__(self, other):
        return isinstance(other, Thing) and self.size == other.size
    def __hash__(self):
        return hash(self.size)

class Guard:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow
    def __enter__(self):
        self.log.append("enter")
        return self
    def __exit__(self, kind, value, trace):
        self.log.append(("exit", kind and kind.__name__))
        return self.swallow

"""

TENSOR = (
    "x = x + {int}",
    "x = x * 0.5",
    "x = torch.sin(x)",
    "x = helper(x)",
    "x = helper(x, k={int})",
    "x = noisy(x)",
    "x = x - x.mean()",
    "x = torch.stack([x, x])[0]",
    "x = x.reshape(-1).reshape(2, 3)",
    "x += {int}",
    "x[0] = {int}",
    "x = torch.where(x > {int}, x, -x)",
    "y = x.clone(); y.mul_(2); x = y",
    "x = x + sum(steps(x, {int}))",
    "x = box['t'] + x if 't' in box else x",
    "box['t'] = x",
    "x = (lambda t, k=n: t + k)(x)",
    "x = countdown(x, {int})",
    "x = thing(x)",
    "row = x[{int} % 2]; row.add_({int})",
    "x, z = x * 2, x; x = x - z",
    "x = torch.cat([row[None] for row in x])",
    "x = x if n > {int} else x.t().t()",
    "x = functools.reduce(lambda a, b: a + b, [x, x * 2], x)",
    "torch.add(x, {int}, out=x)",
    "x = x + torch.rand(2, 3)",
    "x = x + torch.zeros(2, 3).index_fill(0, torch.tensor([1]), {int})",
    "x = F.dropout(x, 0.5)",
    "del x; x = box.setdefault('t2', torch.ones(2, 3))",
    "x = helper(t=x, **{{'k': {int}}})",
    "x = max([x, x + 1], key=lambda t: {int})",
    "x = x.to(torch.float64).float()",
    "(x := x + {int})",
    "x = noisy(noisy(x)) + helper(noisy(x), {int})",
    "x = layer(x)",
)
PLAIN = (
    "n += {int}",
    "n = n * 2 % 7",
    "log.append(n)",
    "log.append(len(log))",
    "box['k'] = box.get('k', 0) + n",
    "box[n] = [n]",
    "log.extend([n, {int}])",
    "print('n', n, {int})",
    "n = int(x.sum() > {int})",
    "log.append(float(x[0, 0]) > 1)",
    "log.append([i * n for i in range({int})])",
    "log.append({{k: v for k, v in zip('ab', (n, {int}))}})",
    "log.append(f'{{n:>3}} {{len(box)}}')",
    "first, *rest = [n, {int}, 3]; log.append(rest)",
    "bump({int})",
    "log.sort(key=str)",
    "n = log[{int}] if len(log) > 9 and isinstance(log[{int}], int) else n",
    "thing.size += {int}",
    "thing.double = n",
    "log.append(thing.double)",
    "thing = thing + {int}",
    "log.append(len(thing))",
    "log.append(list(thing))",
    "log.append(thing == Thing({int}))",
    "Thing.shared += 1",
    "thing.parts = log; log.append(thing.parts is log)",
    "TOTAL += {int}; log.append(TOTAL)",
    "log.append(fail({int}))",
    "log.append(fail(0) or fail(n % 2))",
    "talk = echo({int}); log.append((next(talk), talk.send(n))); talk.close()",
    "talk = echo({int}); next(talk); talk.close()",
    "log.append(sorted([n, {int}, -1], key=lambda v: -v))",
    "log.append([*map(lambda v: v + n, range({int}))])",
    "a = b = []; a.append(n); log.append((a, b))",
    "box.setdefault('list', []).append(n)",
    "box.pop('k', None); log.append(sorted(map(str, box)))",
    "log.append({{n, {int}}} | {{9}})",
    "log.append(any(v is None for v in log))",
    "log.append((n, {int}) < (2, 2))",
    "log.append(str(x.shape) + repr(n))",
    "del box['k']",
    "assert n < {int}, 'n is large'",
    "n = {{0: 3, 1: 2}}.get(n, {int})",
    "log.append(getattr(thing, 'missing', {int}))",
    "log.append(next((v for v in range(9) if v > n), 'none'))",
    "log.append(n if isinstance(n, int) and n else type(n).__name__)",
    "sys.stdout.write(f'{{n}}\\n')",
    "log.append(x.requires_grad)",
    "log.append(torch.is_grad_enabled())",
    "log.append(random.randint(0, 9))",
    "log += [len(log)] * {int}",
    "log.append([thing.size for thing in [Thing(1), thing]])",
    "log.append((lambda: [n for _ in range({int})])())",
    "log.insert(0, 'first'); log.reverse()",
    "count += 10; log.append(count)",
)
JUMPS = (
    "if n > {int}: raise KeyError(n)",
    "if n == {int}: raise ValueError('v', n)",
    "if n > 6: return x, n",
)
LOOP_JUMPS = ("if n > {int}: break", "if n % 2: continue")
CONDITIONS = (
    "n > {int}",
    "n % 2",
    "log",
    "x.sum() > {int}",
    "'k' in box",
    "x.shape[0] == 2",
    "not n",
)
LOOPS = (
    "for i in range({int}):",
    "for i, row in enumerate(x):",
    "for i in steps(n, {int}):",
    "for i in thing:",
    "for i in list(box):",
    "for i, j in zip([1, n], 'ab'):",
    "for i in (noisy(x)[0, 0] for _ in range({int})):",
)
WITHS = (
    "with torch.no_grad():",
    "with Guard(log, False):",
    "with Guard(log, True):",
    "with Guard(log, True) as g, torch.enable_grad():",
    "with contextlib.suppress(KeyError, ZeroDivisionError):",
    "with torch.autocast('cpu', dtype=torch.bfloat16, enabled=n > 2):",
)
HANDLERS = ("except KeyError as e:", "except (ValueError, KeyError):", "except Exception as e:")


class Writer:
    """Writes one program, asking `choose` at each turn."""

    def __init__(self, choose: Choose, size: int = 6) -> None:
        self.choose, self.left = choose, size

    def simple(self, in_loop: bool) -> str:
        kind = self.choose(8)
        if kind < 4:
            return self.fill(TENSOR)
        if kind < 7:
            return self.fill(PLAIN)
        return self.fill(JUMPS + LOOP_JUMPS if in_loop else JUMPS)

    def fill(self, options: tuple[str, ...]) -> str:
        text = options[self.choose(len(options))]
        while "{int}" in text:
            text = text.replace("{int}", str(self.choose(4)), 1)
        return text.replace("{{", "{").replace("}}", "}")

    def block(self, depth: int, in_loop: bool) -> list[str]:
        """A few statements, indented by nobody yet."""
        lines: list[str] = []
        for _ in range(1 + self.choose(3)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        self.left -= 1
        if depth >= 3 or self.left < 0 or self.choose(5) < 2:
            return [self.simple(in_loop)]
        makers = (
            self.branch,
            self.loop,
            self.attempt,
            self.context,
            self.turns,
            self.inner,
            self.match,
        )
        return makers[self.choose(len(makers))](depth + 1, in_loop)

    def branch(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self.fill(CONDITIONS)}:", *indent(self.block(depth, in_loop))]
        if self.choose(2):
            lines += ["else:", *indent(self.block(depth, in_loop))]
        return lines

    def loop(self, depth: int, in_loop: bool) -> list[str]:
        lines = [self.fill(LOOPS), *indent(self.block(depth, True))]
        if self.choose(3) == 0:
            lines += ["else:", *indent(self.block(depth, in_loop))]
        return lines

    def turns(self, depth: int, in_loop: bool) -> list[str]:
        name = f"turn{self.left + 50}"
        body = [f"{name} += 1", *self.block(depth, True)]
        return [f"{name} = 0", f"while {name} < {self.choose(4)}:", *indent(body)]

    def attempt(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["try:", *indent(self.block(depth, in_loop))]
        kind = self.choose(3)
        if kind < 2:
            handled = [*self.block(depth, in_loop), *(["raise"] if self.choose(4) == 0 else [])]
            lines += [self.fill(HANDLERS), *indent(["log.append('handled')", *handled])]
        if kind > 0:
            lines += ["finally:", *indent(self.block(depth, False))]
        return lines

    def context(self, depth: int, in_loop: bool) -> list[str]:
        return [self.fill(WITHS), *indent(self.block(depth, in_loop))]

    def inner(self, depth: int, in_loop: bool) -> list[str]:
        """A function that reads and writes the variables around it, and a call of it."""
        name = f"local{self.left + 50}"
        body = [
            "global TOTAL",
            "nonlocal x, n",
            *self.block(depth, False),
            f"return {self.choose(4)}",
        ]
        head = "@torch.no_grad()" if self.choose(4) == 0 else "# plain"
        return [head, f"def {name}(by=n):", *indent(body), f"log.append({name}())"]

    def match(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["match n:", f"    case {self.choose(4)}:"]
        lines += indent(indent(self.block(depth, in_loop)))
        if self.choose(2):
            lines += ["    case int() as m if m > 3:", *indent(indent(self.block(depth, in_loop)))]
        return [*lines, "    case _:", *indent(indent(self.block(depth, in_loop)))]

    def program(self) -> str:
        """The whole text."""
        body = [
            "global TOTAL",
            "count, thing = 0, Thing(n)",
            "def bump(by):",
            "    nonlocal count",
            "    count += by",
            "    log.append(count)",
            *self.block(0, False),
            *self.block(0, False),
            "return x, n, count, log, thing, Thing.shared",
        ]
        return HEADER + "def program(x, log, box, n):\n" + "\n".join(indent(body)) + "\n"


def indent(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def load(text: str) -> Any:
    """The function that the text defines."""
    space: dict[str, Any] = {"torch": torch}
    exec(compile(text, "<generated>", "exec"), space)
    return space["program"]

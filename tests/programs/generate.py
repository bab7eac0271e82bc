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
import torch

TOTAL = 0

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
LOOPS = ("for i in range({int}):", "for i, row in enumerate(x):", "for i in steps(n, {int}):")
WITHS = (
    "with torch.no_grad():",
    "with Guard(log, False):",
    "with Guard(log, True):",
    "with Guard(log, True) as g, torch.enable_grad():",
)
HANDLERS = ("except KeyError as e:", "except (ValueError, KeyError):", "except Exception as e:")


class Writer:
    """Writes one program, asking `choose` at each turn."""

    def __init__(self, choose: Choose, size: int = 6) -> None:
        self.choose, self.left = choose, size

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.choose(len(options))].replace("{int}", str(self.choose(4)))

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
        makers = (self.branch, self.loop, self.attempt, self.context, self.turns)
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

    def program(self) -> str:
        """The whole text."""
        body = [
            "count = 0",
            "def bump(by):",
            "    nonlocal count",
            "    count += by",
            "    log.append(count)",
            *self.block(0, False),
            *self.block(0, False),
            "return x, n, count, log",
        ]
        return HEADER + "def program(x, log, box, n):\n" + "\n".join(indent(body)) + "\n"


def indent(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def load(text: str) -> Any:
    """The function that the text defines."""
    space: dict[str, Any] = {"torch": torch}
    exec(compile(text, "<generated>", "exec"), space)
    return space["program"]

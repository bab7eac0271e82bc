"""Writes whole programs, asking a source of choices at each turn.

The first choice is always the plainest, so that what hypothesis shrinks gets plainer.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz import grammar

Choose = Callable[[int], int]  # a number below the one given
HOLE = re.compile(r"\{(\w+)\}")
# What a body may not use: methods run below everything, functions below the program.
FORBIDDEN = {
    "method": re.compile(
        r"\b(o|p|C0|C1|f0|f1|f2|fp|bound|box_fn|deco|gen|map|it|locals|eval)\b|\{(call|obj|iterable)\}"
    ),
    "function": re.compile(r"\b(f0|f1|f2|fp|bound|box_fn|deco|map|gen|tf)\b|\{call\}"),
    "program": re.compile(r"(?!)"),
}
OPERANDS = frozenset({"int", "bool", "tensor", "list", "str", "any", "obj"})
GLOBALS = frozenset({"K", "it", "fp", "bound", "counter", "group"})
FIRST = {
    "i": "1", "j": "2", "k": "0", "s": "'s'", "v": "0", "w": "0", "q": "None", "e": "None",
    "a": "[1]", "b": "[2]", "d": "{'k': 1}", "rest": "{}", "x": "torch.ones(2, 3)", "error": "None",
    "y": "torch.ones(2, 3) * 2", "o": "Base(1)", "p": "Base(2)",
}  # fmt: skip
ARGUMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x", (
        "torch.arange(6.0).reshape(2, 3)", "torch.ones(2, 3)",
        "torch.arange(6.0).reshape(3, 2).t()",
        "torch.arange(6, dtype=torch.float64).reshape(2, 3)", "torch.arange(6).reshape(2, 3)",
        "torch.ones(2, 3, requires_grad=True)", "torch.ones(2, 3, requires_grad=True) * 2",
        "torch.arange(12.0).reshape(2, 6)[:, ::2]", "W", "torch.ones(3, 3)",
    )),
    ("y", ("torch.ones(2, 3)", "x", "x.clone()", "x.view(x.shape)", "x[:1].expand(2, 3)", "x[0]")),
    ("i", ("1", "0", "2", "True", "1.5", "-1", "None")),
    ("a", ("[1, 2]", "[]", "G", "[1, 'z', None]", "T['l']", "[x, 1]", "(1, 2)")),
    ("d", ("{'k': 1}", "{}", "T", "{'k': [1], 1: 2}", "{'t': x}", "collections.OrderedDict(k=2)")),
    ("o", ("C0(1)", "C1(2)", "kept", "C0(0)", "types.SimpleNamespace(n=1, items=[1], w=x)")),
    ("s", ("'s'", "'ab'", "'7'")),
)  # fmt: skip
NAMES = [name for name, _ in ARGUMENTS]


@dataclass(frozen=True)
class Program:
    """A module's text (behind `prelude.START`), and for each call the arguments and what happens
    before it.
    """

    text: str
    calls: tuple[str, ...]
    changes: tuple[str, ...]

    def __str__(self) -> str:
        rows = [
            f"# before: {change!r}\nprogram({call})"
            for change, call in zip(self.changes, self.calls, strict=True)
        ]
        return "\n".join([self.text.strip(), *rows])


class Writer:
    """Writes one program."""

    def __init__(self, choose: Choose, size: int = 9) -> None:
        self.choose, self.left, self.level = choose, size, "program"

    # -- texts with holes ------------------------------------------------------------------------
    def fill(self, options: tuple[str, ...], depth: int = 2) -> str:
        """One of the options, its holes filled."""
        forbidden = FORBIDDEN[self.level]
        allowed = [option for option in options if not forbidden.search(option)]
        if depth <= 0:
            allowed = [o for o in allowed if "{" not in o.replace("{n}", "")] or allowed
        text = allowed[self.choose(len(allowed))]

        def hole(found: re.Match[str]) -> str:
            kind = found[1]
            if kind == "n":
                return str(self.choose(4))
            filled = self.fill(grammar.EXPRESSIONS[kind], depth - 1)
            return f"({filled})" if kind in OPERANDS and " " in filled else filled

        escaped = text.replace("{{", "\0").replace("}}", "\1")
        return HOLE.sub(hole, escaped).replace("\0", "{").replace("\1", "}")

    def expression(self, kind: str, depth: int = 1) -> str:
        """An expression of a kind."""
        return self.fill(grammar.EXPRESSIONS[kind], depth)

    # -- statements ------------------------------------------------------------------------------
    def block(self, depth: int, in_loop: bool) -> list[str]:
        """A few statements."""
        lines = self.statement(depth, in_loop)
        while self.left > 0 and self.choose(3):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        """One statement, plain or with blocks."""
        self.left -= 1
        kind = self.choose(10)
        if kind < 6 or depth >= 3 or self.left < 0:
            return self.fill(grammar.STATEMENTS).split("\n")
        if kind == 6:
            jumps = grammar.JUMPS + (grammar.LOOP_JUMPS if in_loop else ())
            return [self.fill(jumps)]
        makers = (
            self.branch, self.loop, self.attempt, self.context, self.turns, self.inner, self.match,
            self.group, self.local_class,
        )  # fmt: skip
        return makers[self.choose(len(makers))](depth + 1, in_loop)

    def branch(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self.expression('bool')}:", *indent(self.block(depth, in_loop))]
        if self.choose(2):
            lines += ["else:", *indent(self.block(depth, in_loop))]
        return lines

    def loop(self, depth: int, in_loop: bool) -> list[str]:
        target = ("i", "v", "i, v", "o.n", "(i, *b)", "d['k']")[self.choose(6)]
        head = f"for {target} in {self.expression('iterable')}:"
        lines = [head, *indent(self.block(depth, True))]
        if self.choose(3) == 2:
            lines += ["else:", *indent(self.block(depth, in_loop))]
        return lines

    def turns(self, depth: int, in_loop: bool) -> list[str]:
        name = f"turn{self.left + 50}"
        body = [f"{name} += 1", *self.block(depth, True)]
        lines = [f"{name} = 0", f"while {name} < {self.choose(4)}:", *indent(body)]
        if self.choose(3) == 2:
            lines += ["else:", *indent(self.block(depth, in_loop))]
        return lines

    def attempt(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["try:", *indent(self.block(depth, in_loop))]
        kind = self.choose(4)
        if kind < 3:
            for _ in range(1 + self.choose(2)):
                lines.append(f"except {self.expression('exceptions')} as error:")
                handled = ["note(error)", *self.block(depth, in_loop)]
                lines += indent(handled + (["raise"] if self.choose(5) == 4 else []))
            if kind == 2:
                lines += ["else:", *indent(self.block(depth, in_loop))]
        if kind:
            lines += ["finally:", *indent(self.block(depth, in_loop))]
        return lines

    def group(self, depth: int, in_loop: bool) -> list[str]:
        raised = f"ExceptionGroup('g', [ValueError({self.choose(4)}), KeyError('k')])"
        body = self.block(depth, False) + ([f"raise {raised}"] if self.choose(2) else [])
        lines = ["try:", *indent(body)]
        for kind in ("ValueError", "(KeyError, TypeError)", "Exception")[: 1 + self.choose(3)]:
            inside = ["note(error)", *without_jumps(self.block(depth, False))]
            lines += [f"except* {kind} as error:", *indent(inside)]
        return lines

    def context(self, depth: int, in_loop: bool) -> list[str]:
        return [f"with {self.expression('manager')}:", *indent(self.block(depth, in_loop))]

    def match(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"match {self.expression('any')}:"]
        for _ in range(1 + self.choose(2)):
            lines.append(f"    case {self.expression('pattern')}:")
            lines += indent(indent(self.block(depth, in_loop)))
        return [*lines, "    case _:", *indent(indent(self.block(depth, in_loop)))]

    def inner(self, depth: int, in_loop: bool) -> list[str]:
        """A function or generator in the function, and calls of it."""
        name = f"local{self.left + 50}"
        body = self.block(depth, False)
        uses = [
            f"note({name}())",
            f"{name}(i); note({name}({self.expression('any')}))",
            f"a.append({name})",
        ]
        if self.choose(4) == 3:
            body += [f"yield {self.expression('any')}", *self.block(depth, False)]
            uses = [f"note(list({name}()))", f"for v in {name}():\n    note(v)", f"it = {name}()"]
        else:
            body.append(f"return {self.expression('any')}")
        head = f"def {name}(v=1, *args, k={self.expression('any')}):"
        decorator = ("", "@decorate", "@torch.no_grad()")[self.choose(3)]
        made = [head, *indent(self.scoped(body, {"v", "args", "k"}, True))]
        use = uses[self.choose(len(uses))].split("\n")
        return [*([decorator] if decorator else []), *made, *use]

    def local_class(self, depth: int, in_loop: bool) -> list[str]:
        """A class made while the function runs."""
        name = f"Local{self.left + 50}"
        body = ["level = 1", *self.methods(2)]
        uses = (
            f"o = {name}({self.choose(3)})",
            f"note({name}.level)",
            f"note(isinstance(o, {name}))",
        )
        return [f"class {name}(C0):", *indent(body), uses[self.choose(3)]]

    # -- functions and classes -------------------------------------------------------------------
    def scoped(self, body: list[str], params: set[str], nested: bool = False) -> list[str]:
        """A function's body with its names declared, or given a first value."""
        names = assigned("\n".join(body)) - params
        outer = sorted(names & GLOBALS)
        local = sorted(name for name in names - GLOBALS if name in FIRST)
        head = [f"global {', '.join(outer)}"] if outer else []
        if nested and self.choose(2) and local:
            shared = [name for name in local if name in NAMES]
            head += [f"nonlocal {', '.join(shared)}"] if shared else []
            local = [name for name in local if name not in NAMES]
        return [*head, *(f"{name} = {FIRST[name]}" for name in local), *body]

    def function(self, head: str, params: set[str], result: str, size: int = 3) -> list[str]:
        """A function of the module."""
        self.left, left = size, self.left
        body = [*self.block(1, False), f"return {self.expression(result)}"]
        self.left = left
        return [f"def {head}:", *indent(self.scoped(body, params))]

    def methods(self, most: int) -> list[str]:
        """Some methods of a class."""
        level, self.level = self.level, "method"
        texts = [self.fill(grammar.METHODS) for _ in range(self.choose(most + 1))]
        self.level = level
        return [line for text in texts for line in text.split("\n")]

    def module(self) -> Iterator[str]:
        """The functions and classes, after the fixed part."""
        self.level = "function"
        yield from self.function("f0(i=1)", {"i"}, "int")
        yield from self.function("f1(i, v=None, *rest)", {"i", "v"}, "int")
        yield from self.function("f2(i, *v, k=1, **d)", {"i", "v", "k", "d"}, "int")
        yield from self.function("tf(x, i=1)", {"x", "i"}, "tensor")
        self.left = 3
        body = [
            *self.block(1, False),
            "for v in range(i):",
            *indent(["yield v", *self.block(2, True)]),
        ]
        yield from ["def gen(i):", *indent(self.scoped(body, {"i"}))]
        yield "deco = decorate(f0)"
        yield from ["class C0(Base):", "    pass", *indent(self.methods(4))]
        yield from ["class C1(C0):", "    pass", *indent(self.methods(3))]
        yield "o, p, kept = C0(1), C1(2), C0(5)"
        yield "fp, bound, box_fn = functools.partial(f0), o.method, {'f': f0}"

    def program(self, calls: int = 3) -> Program:
        """The whole program."""
        size = self.left
        lines = list(self.module())
        self.level, self.left = "program", size
        body = [*self.block(0, False), *self.block(0, False)]
        body.append("return x, y, i, a, d, o, s")
        lines += [f"def program({', '.join(NAMES)}):", *indent(self.scoped(body, set(NAMES)))]
        text = "\n".join([*lines, ""])
        made: list[str] = []
        for _ in range(calls):
            made.append(self.arguments() if not made or self.choose(2) else made[-1])
        changes = [
            self.fill(grammar.STATEMENTS) if n and self.choose(2) else "" for n in range(calls)
        ]
        return Program(text, tuple(made), tuple(changes))

    def arguments(self) -> str:
        """The arguments of one call: mostly the plainest."""
        texts = []
        for _, options in ARGUMENTS:
            at = self.choose(len(options)) if self.choose(3) == 2 else 0
            texts.append(options[at])
        return ", ".join(
            f"{n} := {t}" if n in "x" else t for n, t in zip(NAMES, texts, strict=True)
        )


def indent(lines: list[str]) -> list[str]:
    """The lines one level deeper."""
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def without_jumps(lines: list[str]) -> list[str]:
    """Statements as `except*` allows them: without return."""
    return [re.sub(r"\breturn\b.*", "pass", line) for line in lines]


def assigned(body: str) -> set[str]:
    """The names that a function with this body would assign."""
    names: set[str] = set()
    todo: list[ast.AST] = list(ast.parse("def _():\n" + textwrap.indent(body, " ")).body[0].body)  # type: ignore[attr-defined]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        for field in ("name", "rest"):
            bound = getattr(node, field, None)
            if isinstance(bound, str):
                names.add(bound)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += [*getattr(node, "decorator_list", ())]
            declared = {
                n for sub in ast.walk(node) if isinstance(sub, ast.Nonlocal) for n in sub.names
            }
            names |= declared
            continue
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            todo += [sub for sub in ast.walk(node) if isinstance(sub, ast.NamedExpr)]
            continue
        todo += ast.iter_child_nodes(node)
    return names

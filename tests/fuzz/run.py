"""Runs a generated program, eager and compiled, and makes one that fails as small as it gets."""

import ast
import contextlib
import re
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

import dynacap
from dynacap.testing import Branch, Outcome, Scenario, Tolerance, call, compare, snapshot
from tests.fuzz import prelude
from tests.fuzz.writer import Program

HIDDEN = frozenset({"look", "var", "program"})


class World:
    """A program that was loaded, with all that it can leave a mark on."""

    def __init__(self, program: Program) -> None:
        torch.set_grad_enabled(True)
        self.program = program
        self.space: dict[str, Any] = {"look": dynacap.disable(self.look), "__name__": "fuzzed"}
        exec(compile(prelude.START + program.text, "<fuzzed>", "exec"), self.space)
        self.calls = [call(*eval(f"[{args}]", self.space)) for args in program.calls]

    def look(self, value: Any = None) -> Any:
        """What a function outside sees of the world while the program runs."""
        seen = {name: self.space[name] for name in ("notes", "K", "G", "T", "W", "kept")}
        self.space["notes"].append(Branch("world", snapshot(value=value, **seen)))
        return value

    def everything(self) -> dict[str, Any]:
        """All that can be compared."""
        found = {
            name: value
            for name, value in self.space.items()
            if name not in HIDDEN
            and not name.startswith("__")
            and not isinstance(value, types.ModuleType)
        }
        return {**found, "var": self.space["var"].get()}

    def change(self, index: int) -> None:
        """What happens before a call; where that raises, it is left out."""
        text = self.program.changes[index]
        with contextlib.suppress(Exception), contextlib.redirect_stdout(None):
            exec(compile(text, "<change>", "exec"), self.space)

    def scenario(self) -> Scenario:
        """The calls, as they are compared."""
        function = self.space["program"]
        return Scenario(function, self.calls, before=self.change, watch=self.everything)


def outcome(program: Program) -> Outcome:
    """What compiling the program came to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with dynacap.config.patch(raise_internal_errors=True, recompile_limit=64):
                return compare(lambda: World(program).scenario(), tolerance=Tolerance(4.0))
        finally:
            dynacap.reset()
            torch.set_grad_enabled(True)


def problem(program: Program) -> str:
    """How compiled differs from eager, or ''."""
    try:
        World(program)
    except Exception:
        return ""  # it does not even load
    try:
        found = outcome(program)
    except Exception as error:
        return f"CRASH {type(error).__name__}: {error}"
    return str(found) if found.problems else ""


def kind_of(told: str) -> str:
    """What must stay of a problem while its program gets smaller: what is wrong, not where."""
    first = told.strip().partition("\n")[0]
    return re.sub(r"[0-9]+|'[^']*'|\[[^]]*\]", "", first)[:70]


# -- making it small -------------------------------------------------------------------------------


def smallest(program: Program, seconds: float = 120.0) -> Program:
    """A program that still fails and from which nothing more can be taken away."""
    end = time.monotonic() + seconds
    kind = kind_of(problem(program))
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in smaller(program):
            if time.monotonic() > end:
                break
            if kind_of(problem(candidate)) == kind:
                program, progress = candidate, True
                break
    return program


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    if len(program.calls) > 1:
        yield replace(program, calls=program.calls[:1], changes=program.changes[:1])
        yield replace(program, calls=program.calls[1:], changes=("", *program.changes[2:]))
        yield replace(program, calls=program.calls[:-1], changes=program.changes[:-1])
    for index, change in enumerate(program.changes):
        if change:
            changes = [*program.changes]
            changes[index] = ""
            yield replace(program, changes=tuple(changes))
    for text in texts_with_less(program.text):
        yield replace(program, text=text)


def texts_with_less(text: str) -> Iterator[str]:
    """The module's text with statements taken out, from large to small, and blocks unwrapped."""
    count = sum(1 for _ in places(ast.parse(text)))
    order = sorted(range(count), key=lambda n: -size_at(text, n))
    for number in order:
        for action in ("drop", "unwrap", "simplify"):
            tree = ast.parse(text)
            _, body, index = next(p for i, p in enumerate(places(tree)) if i == number)
            if act(body, index, action):
                with contextlib.suppress(Exception):
                    yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def size_at(text: str, number: int) -> int:
    """How much is at a place."""
    tree = ast.parse(text)
    _, body, index = next(p for i, p in enumerate(places(tree)) if i == number)
    return len(ast.unparse(body[index]))


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, list[Any], int]]:
    """Each statement, by the list that it stands in."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                yield from ((node, body, index) for index in range(len(body)))


def act(body: list[Any], index: int, action: str) -> bool:
    """Change one statement; False where there is nothing to do."""
    node = body[index]
    if isinstance(node, ast.AugAssign) and ast.unparse(node.target).startswith("turn"):
        return False  # its loop would never end
    if action == "drop":
        if isinstance(node, ast.Pass) and len(body) == 1:
            return False
        del body[index]
        if not body and not isinstance(node, (ast.ExceptHandler, ast.match_case)):
            body.append(ast.Pass())
        return True
    inside = getattr(node, "body", None)
    if action == "unwrap":
        if not isinstance(inside, list) or isinstance(
            node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler, ast.match_case)
        ):
            return False
        body[index : index + 1] = inside
        return True
    if isinstance(node, ast.Try) and node.orelse:
        node.orelse = []
        return True
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call) and len(value.args) == 1:
        node.value = value.args[0]
        return True
    if isinstance(value, (ast.BinOp, ast.BoolOp)):
        node.value = value.left if isinstance(value, ast.BinOp) else value.values[0]
        return True
    return False

"""The generated function of an entry: readable Python, made from one captured region."""

from __future__ import annotations

import itertools
import linecache
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynacap.codegen.emit import Emitter
from dynacap.guards.source import Source

_numbers = itertools.count()
_INDENT = "    "


@dataclass
class EntryCode:
    """Source of a generated function, with what it needs to run."""

    source: str
    constants: dict[str, Any]
    slots: tuple[Source, ...]
    filename: str = field(default="")

    def make(self, graph: Callable[..., Any] | None) -> types.FunctionType:
        """The function, bound to the compiled graph.  Its lines can be seen while it lives."""
        number = next(_numbers)
        self.filename = f"<dynacap entry {number}>"
        namespace: dict[str, Any] = dict(self.constants)
        namespace["graph"] = graph
        exec(compile(self.source, self.filename, "exec"), namespace)
        made: types.FunctionType = namespace.pop("entry")  # it would hold itself
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        forget = weakref.finalize(made, linecache.cache.pop, self.filename, None)
        forget.atexit = False
        return made


@dataclass(frozen=True)
class GraphCall:
    """The texts of a graph's call: arguments, names for the results, what happens if it raises.

    ``recover`` is called with the exception and the inputs; where it gives None, ``again`` is
    returned.  Both are None if the exception just leaves.  ``rewinds``: the state of the random
    streams is kept before the graph runs.
    """

    inputs: list[str]
    outputs: list[str]
    recover: str | None = None
    again: str | None = None
    rewinds: bool = False


def generate_entry(e: Emitter, result: str, call: GraphCall | None) -> EntryCode:
    """Put the parts together: the graph's call, the lines behind it (``e.lines``), the result."""
    lines = [f"def entry({', '.join(e.args.values())}):"]
    body = [] if call is None else _graph_call(e, call)
    body += e.lines
    body.append(f"return {result}")
    lines += [_INDENT + line for line in body]
    return EntryCode("\n".join(lines) + "\n", e.constants, tuple(e.args))


def _graph_call(e: Emitter, call: GraphCall) -> list[str]:
    text = f"graph({', '.join(call.inputs)})"
    names = ", ".join(call.outputs) + ("," if len(call.outputs) == 1 else "")
    if call.recover is None:
        return [f"{names} = {text}" if names else text]
    results, error = e.fresh("results"), e.fresh("error")
    inputs = ", ".join(call.inputs) + ("," if len(call.inputs) == 1 else "")
    random = e.fresh("random") if call.rewinds else None
    lines = [] if random is None else [f"{random} = {call.recover}.before()"]
    lines += [
        "try:",
        _INDENT + f"{results} = {text}",
        f"except BaseException as {error}:",
        _INDENT + f"{results} = {call.recover}({error}, ({inputs}), {random})",
    ]
    if call.again is not None:
        lines += [f"if {results} is None:", _INDENT + f"return {call.again}"]
    return [*lines, f"{names} = {results}"] if names else lines

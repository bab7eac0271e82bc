"""The generated function of an entry: readable Python, made from one captured region."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynacap.codegen.emit import Emitter
from dynacap.guards.source import Source
from dynacap.values.torch_library.state import current_state, restore_state

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
        """The function, bound to the compiled graph."""
        number = next(_numbers)
        self.filename = f"<dynacap entry {number}>"
        namespace: dict[str, Any] = dict(self.constants)
        namespace["graph"] = graph
        exec(compile(self.source, self.filename, "exec"), namespace)
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        made: types.FunctionType = namespace["entry"]
        return made


def generate_entry(
    e: Emitter,
    result: str,
    inputs: list[str] | None,
    outputs: list[str],
    recover: str | None,
    *,
    sets_state: bool = False,
) -> EntryCode:
    """Put the parts together.

    ``e.lines`` are the lines behind the graph's call; ``inputs`` are the arguments of the graph,
    None if there is no graph (one without inputs and outputs may still set grad mode); ``recover``
    is what to return if the graph raises and nothing has happened yet.  A graph that sets torch's
    state and then raises leaves it as ``with`` statements would have.
    """
    lines = [f"def entry({', '.join(e.args.values())}):"]
    body: list[str] = []
    if inputs is not None:
        body += _graph_call(inputs, outputs, recover, e if sets_state else None)
    body += e.lines
    body.append(f"return {result}")
    lines += [_INDENT + line for line in body]
    return EntryCode("\n".join(lines) + "\n", e.constants, tuple(e.args))


def _graph_call(
    inputs: list[str], outputs: list[str], recover: str | None, state: Emitter | None
) -> list[str]:
    targets = ", ".join(outputs) + ("," if len(outputs) == 1 else "")
    call = f"graph({', '.join(inputs)})"
    line = f"{targets} = {call}" if outputs else call
    if state is not None:
        saved = state.fresh("state")
        return [
            f"{saved} = {state.helper(current_state)}()",
            "try:",
            _INDENT + line,
            "except BaseException:",
            _INDENT + f"{state.helper(restore_state)}({saved})",
            _INDENT + "raise",
        ]
    if recover is None:
        return [line]
    return ["try:", _INDENT + line, "except Exception:", _INDENT + f"return {recover}"]

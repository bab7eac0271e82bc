"""The generated function of an entry: readable Python, made from one captured region."""

from __future__ import annotations

import functools
import itertools
import linecache
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynacap.codegen.emit import Emitter
from dynacap.guards.choose import graph_call_type
from dynacap.guards.source import Source

_numbers = itertools.count()
_INDENT = "    "


@dataclass(frozen=True)
class GraphCall:
    """The texts of a graph's call: arguments, names for the results, what happens if it raises.

    ``kept`` are the arguments that the lines behind the call use.  ``recover`` is called with the
    exception and the inputs; where it gives None, ``again`` is called with what ``flat`` names.
    Both are None if the exception just leaves.  ``rewinds``: what the graph
    changes is kept as it is before.
    """

    inputs: list[str]
    outputs: list[str]
    kept: list[str]
    recover: str | None = None
    again: str | None = None
    flat: tuple[str, ...] = ()
    rewinds: bool = False


@dataclass
class EntryCode:
    """Source of a generated function, with what it needs to run.

    With ``call``, the function is what comes behind the graph's call, which C makes; there may be
    no need for one.
    """

    source: str
    constants: dict[str, Any]
    slots: tuple[Source, ...]
    call: Callable[..., Any] | None = None
    filename: str = field(default="")
    function: Any = None  # the Python function, if there is one

    def make(self, graph: Callable[..., Any] | None) -> Any:
        """The entry's function, bound to the compiled graph."""
        made = None if self.source.startswith("#") else self._defined(graph)
        return made if self.call is None else self.call(graph, rest=made)

    def _defined(self, graph: Callable[..., Any] | None) -> Any:
        """The Python function.  Its lines can be seen while it lives."""
        number = next(_numbers)
        self.filename = f"<dynacap entry {number}>"
        namespace: dict[str, Any] = dict(self.constants)
        namespace["graph"] = graph
        exec(compile(self.source, self.filename, "exec"), namespace)
        self.function = made = namespace.pop("entry")  # it would hold itself
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        forget = weakref.finalize(made, linecache.cache.pop, self.filename, None)
        forget.atexit = False
        return made


def generate_entry(e: Emitter, result: str, call: GraphCall | None) -> EntryCode:
    """Put the parts together: the graph's call, the lines behind it (``e.lines``), the result."""
    caller = graph_call_type()
    named = call is not None and all(map(str.isidentifier, call.inputs))  # none is to be computed
    if call is not None and caller is not None and named and not call.rewinds:
        return _behind_graph(e, result, call, caller)
    body = [] if call is None else _graph_call(e, call)
    source = _function(list(e.args.values()), [*body, *e.lines, f"return {result}"])
    return EntryCode(source, e.constants, tuple(e.args))


def _function(parameters: list[str], body: list[str]) -> str:
    lines = [f"def entry({', '.join(parameters)}):", *(_INDENT + line for line in body)]
    return "\n".join(lines) + "\n"


def _behind_graph(e: Emitter, result: str, call: GraphCall, caller: Any) -> EntryCode:
    """The graph is called from C, and Python goes on behind it if there is anything to do."""
    slots = {name: position for position, name in enumerate(e.args.values())}
    constants: list[Any] = []

    def place(name: str) -> int:
        if name in slots:
            return slots[name]
        constants.append(e.constants[name])
        return -len(constants)

    inputs = tuple(map(place, call.inputs))
    chosen, flat = tuple(map(place, call.kept)), tuple(map(place, call.flat))
    output = call.outputs.index(result) if not e.lines and result in call.outputs else -1
    told = f"# {_unpacked(call, 'graph(' + ', '.join(call.inputs) + ')')}"
    if output >= 0:
        source = f"{told}; return {result}\n"
    else:
        body = [told, *([_unpacked(call, "outputs")] if call.outputs else []), *e.lines]
        source = _function(["outputs", *call.kept], [*body, f"return {result}"])
    bound = functools.partial(
        caller, nslots=len(slots), constants=tuple(constants), inputs=inputs, chosen=chosen,
        noutputs=len(call.outputs), output=output, recover=e.constants.get(call.recover or ""),
        again=e.constants.get(call.again or ""), flat=flat,
    )  # fmt: skip
    return EntryCode(source, e.constants, tuple(e.args), bound)


def _unpacked(call: GraphCall, text: str) -> str:
    names = ", ".join(call.outputs) + ("," if len(call.outputs) == 1 else "")
    return f"{names} = {text}" if names else text


def _graph_call(e: Emitter, call: GraphCall) -> list[str]:
    text = f"graph({', '.join(call.inputs)})"
    if call.recover is None:
        return [_unpacked(call, text)]
    results, error = e.fresh("results"), e.fresh("error")
    inputs = ", ".join(call.inputs) + ("," if len(call.inputs) == 1 else "")
    before = e.fresh("before") if call.rewinds else None
    lines = [] if before is None else [f"{before} = {call.recover}.before(({inputs}))"]
    lines += [
        "try:",
        _INDENT + f"{results} = {text}",
        f"except BaseException as {error}:",
        _INDENT + f"{results} = {call.recover}({error}, ({inputs}), {before})",
    ]
    if call.again is not None:
        run_again = f"return {call.again}({', '.join(call.flat)})"
        lines += [f"if {results} is None:", _INDENT + run_again]
    return [*lines, _unpacked(call, results)] if call.outputs else lines

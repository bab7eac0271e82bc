"""An entry as it is kept on disk: its guards, its graph, and the code around it.

A first capture of a function is kept under all that decides what is found: the code, the options,
versions, and what the arguments look like.  A later process reads the guards first, and the rest
only if they hold for its own arguments; then the graph goes to the backend as after a capture.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from dynacap import log, totals
from dynacap.backends.native.build.build import disk_cache
from dynacap.backends.native.build.cache import NotPrivate
from dynacap.backends.recovery import Recovery
from dynacap.backends.registry import Backend
from dynacap.cache import Session
from dynacap.codegen import EntryCode
from dynacap.config import config
from dynacap.convert import Built, Entry, Parts, bind, compile_for
from dynacap.errors import BackendCompilerFailed, GraphBreak
from dynacap.fxlite import Graph, GraphModule, Node
from dynacap.fxlite.node import map_aggregate
from dynacap.fxlite.pickling import Place, Record, from_records
from dynacap.fxlite.risks import has_detached_results
from dynacap.guards import GuardSet, make_checker
from dynacap.guards.choose import graph_call_type
from dynacap.kept.circumstances import files_now, key_of
from dynacap.kept.names import NoWordsError
from dynacap.kept.words import Places, Reading, read, write
from dynacap.suspend import suspend_failed
from dynacap.values.tensor.dynamic import History

_code_log = log.channel("code")
VARIANTS = 4  # entries under one key: what tells them apart is among their guards
KIND = "entry"
_META = ("example_value", "source_loc", "source_stack", "step", "handled", "sets_state", "checked")


class _Words(NamedTuple):
    """What a file holds.

    ``files``: those that the program's objects are from, with their times; ``reason``: why the
    graph breaks; ``shown``: whether the graph counts as one.
    """

    files: dict[str, Any]
    reason: tuple[Any, ...] | None
    sets_state: bool
    compiles: bool
    shown: bool
    guards: bytes
    graph: bytes
    code: bytes


def store(place: Any, session: Session, backend: Backend, entry: Entry, flat: Any) -> None:
    """Keep an entry, if there are words for all of it."""
    if not config.keep_captures or entry.built.parts is None:
        return
    with _harmless(place.name):
        key = key_of(place, backend, session.options, flat)
        if key is not None:
            words = _in_words(place, entry, flat)
            disk_cache().note(_free_name(key), words, KIND)


def recall(place: Any, session: Session, backend: Backend, flat: Any) -> Entry | None:
    """The entry that an earlier process kept for such a call."""
    if config.keep_captures:
        with _harmless(place.name):
            key = key_of(place, backend, session.options, flat)
            if key is not None:
                return _first(key, Reading(flat, place.sites, session), place, backend)
    return None


@contextlib.contextmanager
def _harmless(name: str) -> Iterator[None]:
    """What goes wrong on the way to the disk or back costs no more than a capture."""
    try:
        yield
    except BackendCompilerFailed:
        raise
    except (OSError, NotPrivate, NoWordsError, pickle.PicklingError, RecursionError) as error:
        _code_log.emit(f"{name} is not kept on disk: {error}")
    except Exception as error:
        if config.raise_internal_errors:
            raise
        log.warn_once(("kept", name), f"the capture of {name} cannot be kept on disk: {error!r}")


def _in_words(place: Any, entry: Entry, flat: Any) -> bytes:
    built, guards, _, reason = entry
    graph, inputs, sets_state, compiles = built.parts or Parts()
    places = Places(guards, built.slots, flat, place.sites)
    files: dict[str, Any] = {}
    words = _Words(
        files,
        None if reason is None else (reason.reason, reason.detail, reason.hint, reason.stack),
        sets_state,
        compiles,
        built.graph is not None,
        write((list(guards), built.slots, inputs, place.history.first), places, files),
        write(graph and _graph_words(graph), places, files),
        write(_code_words(built.code), places, files),
    )
    return pickle.dumps(tuple(words))


def _names(key: str) -> list[str]:
    return [f"{key}\nvariant {number}" for number in range(VARIANTS)]


def _noted(name: str) -> _Words | None:
    """What a file holds; None where there is none, or nothing of this kind."""
    words = disk_cache().noted(name, KIND)
    try:
        return None if words is None else _Words(*pickle.loads(words))
    except Exception:  # pickle raises anything
        return None


def _free_name(key: str) -> str:
    """A name under a key that has no entry, or one from files that have changed; else any."""
    for name in _names(key):
        words = _noted(name)
        if words is None or files_now(words.files) != words.files:
            return name
    return random.Random().choice(_names(key))  # the program's own random numbers stay


def _first(key: str, reading: Reading, place: Any, backend: Backend) -> Entry | None:
    """The first entry under a key that fits the call."""
    for name in _names(key):
        words = _noted(name)
        if words is None:
            break
        with contextlib.suppress(NoWordsError), reading.begun():
            found = _recalled(words, reading, backend, place.history)
            if found is not None:
                totals.add_recalled()
                return found
    return None


def _recalled(words: _Words, reading: Reading, backend: Backend, history: History) -> Entry | None:
    if files_now(words.files) != words.files:
        return None
    listed, slots, inputs, seen = read(words.guards)
    guards = GuardSet(listed)
    checker = make_checker(guards, slots)
    if checker.check(reading.flat) is None:
        return None
    records = read(words.graph)
    if records is None:
        code = _code(*read(words.code))
        built = Built(code.make(None), slots, code, None)
    else:
        graph = GraphModule({}, from_records(records, Graph))
        built = _with_graph(graph, list(map(reading.value, inputs)), words, reading, backend)
    history.begin(*seen)
    reason = None if words.reason is None else GraphBreak(*words.reason)
    return Entry(built, guards, checker, reason)


def _with_graph(
    graph: GraphModule, examples: list[Any], words: _Words, reading: Reading, backend: Backend
) -> Built:
    makes = functools.partial(compile_for, backend, graph, examples, words.sets_state)
    compiled = makes() if words.compiles else graph.forward
    recovery = Recovery(graph, compiled, words.sets_state, reading.sites is not None)
    run_plain = functools.partial(suspend_failed, recovery.interruption, reading.sites)
    reading.parts |= {"recovery": recovery, "run_plain": run_plain}
    built = bind(_code(*read(words.code)), graph, compiled)
    return built if words.shown else replace(built, graph=None)


def _graph_words(module: GraphModule) -> list[Any]:
    if module.attributes:
        raise NoWordsError("attributes of a graph")
    if has_detached_results(module.graph):  # fake tensors are kept by their looks
        raise NoWordsError("a result that was detached from an argument, and has a gradient")
    nodes = module.graph.nodes
    at = {node: Place(index) for index, node in enumerate(nodes)}

    def stored(leaf: Any) -> Any:
        return at[leaf] if isinstance(leaf, Node) else leaf

    found = []
    for node in nodes:
        meta = {name: node.meta[name] for name in _META if name in node.meta}
        args, kwargs = map_aggregate(node.args, stored), map_aggregate(node.kwargs, stored)
        found.append(Record(node.op, node.name, node.target, args, kwargs, node.type, meta))
    return found


def _code_words(code: EntryCode) -> tuple[Any, ...]:
    call = None if code.call is None else code.call.keywords  # type: ignore[attr-defined]
    return code.source, code.constants, code.slots, call


def _code(source: str, constants: Any, slots: Any, call: dict[str, Any] | None) -> EntryCode:
    bound = None if call is None else functools.partial(graph_call_type(), **call)
    return EntryCode(source, constants, slots, bound)

"""Backward graphs for passes that begin with some of a graph's results.

The backward graph that AOTAutograd makes takes a gradient of every result, its tangents.  Where
some are missing, zeros would do mostly, but not where something is infinite (``0 * inf``); and what
only the way of those needs would have to be as it was saved.  So a pass that begins with some of
the results gets a graph of its own: the whole one, out of which the way of the others is cut.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from dynacap.backends.native.aten.trace import CompileAten, Compiled, Keep, Note
from dynacap.hook import choose_hook

aten = torch.ops.aten
Without = tuple[int, ...]  # the tangents that are missing
_MOST = 16  # graphs of such; beyond them the whole one gets zeros


class _Cut(NamedTuple):
    """A backward graph without some of the tangents, and which of the whole one's arguments it
    takes."""

    graph: GraphModule
    takes: Sequence[int]


class Backward:
    """A backward graph, compiled as backward passes ask for it."""

    def __init__(
        self,
        graph: Callable[[], GraphModule],
        compile_aten: CompileAten,
        keep: Keep | None,
        first: int,
    ) -> None:
        self._graph, self._compile_aten, self._keep = graph, compile_aten, keep
        self.first = first  # of the tangents, among the arguments
        self._cuts: dict[Without, _Cut | None] = {}
        self._runs: dict[Without, tuple[Compiled, Sequence[int]]] = {}
        self._used = False
        self._needs: Sequence[Sequence[int]] | None = None

    def __call__(self, *args: Any) -> Any:
        without = tuple(i for i, arg in enumerate(args[self.first :]) if arg is None)
        run, takes = self._run(without, noted=not self._used)
        self._used = True
        if len(takes) == len(args):
            return run(*(self._with_zeros(args) if without else args))
        return run(*[args[place] for place in takes])

    def begin(self) -> None:
        """Make what is likely to be asked for first: the graph for the losses among the results."""
        tangents = self._graph().graph.find_nodes(op="placeholder")[self.first :]
        losses = [i for i, each in enumerate(tangents) if each.meta["val"].dim() == 0]
        others = (i for i in range(len(tangents)) if i not in losses)
        self._run(tuple(others) if losses else (), noted=True)

    def take_up(self, part: Note, again: Callable[[Note, Compiled], Compiled]) -> None:
        """The graph that an earlier process noted."""
        without: Without = tuple(part["without"])
        run = again(part, lambda *args: self._cut_or_whole(without).graph(*args))
        self._runs[without] = run, part["takes"]
        self._needs = part["needs"]

    def needs(self) -> Sequence[Sequence[int]]:
        """Which arguments a pass that begins with a tangent alone takes, for each of them."""
        if self._needs is None:
            with choose_hook().active(None):
                self._needs = _needs(self._graph(), self.first)
        return self._needs

    def takes(self, without: Without) -> Sequence[int]:
        """Which arguments a pass without some of the tangents takes."""
        known = self._runs.get(without)
        if known is not None:
            return known[1]
        with choose_hook().active(None):
            return self._cut_or_whole(without).takes

    def _run(self, without: Without, *, noted: bool) -> tuple[Compiled, Sequence[int]]:
        if without not in self._runs:
            with choose_hook().active(None):  # the user's own call may be watched
                self._runs[without] = self._compiled(without, noted=noted)
        return self._runs[without]

    def _compiled(self, without: Without, *, noted: bool) -> tuple[Compiled, Sequence[int]]:
        graph, takes = self._cut_or_whole(without)
        keep = self._keep if noted else None
        kept: Keep | None = None
        if keep is not None:
            about = {"without": without, "takes": takes, "first": self.first, "needs": self.needs()}
            kept = functools.partial(_keep_with, keep, about)
        return self._compile_aten(graph, graph, kept), takes

    def _cut_or_whole(self, without: Without) -> _Cut:
        if without not in self._cuts and len(self._cuts) < _MOST:
            self._cuts[without] = _cut(self._graph(), self.first, without)
        return self._cuts.get(without) or _whole(self._graph())

    def _with_zeros(self, args: Sequence[Any]) -> list[Any]:
        """The arguments, with zeros for tangents that are missing."""
        values = [each.meta["val"] for each in self._graph().graph.find_nodes(op="placeholder")]
        symbols: dict[Any, int] = {}
        for value, arg in zip(values, args, strict=True):
            if isinstance(value, torch.Tensor) and arg is not None:
                pairs = zip(
                    (*value.shape, *value.stride()), (*arg.shape, *arg.stride()), strict=True
                )
                symbols |= {s.node.expr: n for s, n in pairs if isinstance(s, torch.SymInt)}
            elif isinstance(value, torch.SymInt):
                symbols[value.node.expr] = arg

        def number(size: Any) -> int:
            return size if isinstance(size, int) else int(size.node.expr.xreplace(symbols))

        def zeros(like: torch.Tensor) -> torch.Tensor:
            sizes, strides = map(number, like.shape), map(number, like.stride())
            return torch.empty_strided(tuple(sizes), tuple(strides), dtype=like.dtype).zero_()

        return [zeros(v) if arg is None else arg for v, arg in zip(values, args, strict=True)]


def first_tangent(module: GraphModule) -> int:
    """Where a backward graph's arguments are gradients, and no more what was saved."""
    inputs = module.graph.find_nodes(op="placeholder")
    return sum("tangents" not in str(node.target) for node in inputs)


def _whole(module: GraphModule) -> _Cut:
    return _Cut(module, list(range(len(module.graph.find_nodes(op="placeholder")))))


def _cut(module: GraphModule, first: int, without: Without) -> _Cut | None:
    """The graph without what comes of these tangents alone; None if that cannot be told.

    All that a backward pass computes is linear in its tangents together.  So where an operator is
    given something that is gone beside something that is not, the former stands for zeros.
    """
    if not without:
        return _whole(module)
    inputs = module.graph.find_nodes(op="placeholder")
    gone = _gone(module, {inputs[first + i] for i in without}, set(inputs[first:]))
    graph, made = Graph(), dict[Node, Node]()
    for node in module.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], made.get)).meta.update(node.meta)
        elif node not in gone:
            lost = [each for each in node.all_input_nodes if each in gone]
            same = _other_summand(node, lost)
            if same is not None:
                made[node] = made[same]
                continue
            zeros = {each: _zeros(graph, each.meta.get("val")) for each in lost}
            if None in zeros.values():
                return None
            found = {**made, **zeros}
            made[node] = graph.node_copy(node, found.__getitem__)
    graph.eliminate_dead_code()
    kept = {each for each in inputs if each in made and made[each].users}
    kept |= _defining(graph, [each for each in inputs if each in made], kept)
    takes = [i for i, each in enumerate(inputs) if each in kept]
    for each in inputs:
        if each in made and each not in kept:
            graph.erase_node(made[each])
    cut = GraphModule(module, graph)
    cut.meta.update(module.meta)
    return _Cut(with_own_memory(cut), takes)


def _defining(graph: Graph, inputs: Sequence[Node], kept: set[Node]) -> set[Node]:
    """The inputs that a graph needs for the symbols in its sizes: numbers and tangents before
    others, which a pass may find changed."""
    used = [node.meta.get("val") for node in graph.nodes if node.op != "placeholder"]
    missing = set[Any]().union(*map(_symbols, used), *(_symbols(x.meta["val"]) for x in kept))
    more = set[Node]()
    later = [each for each in inputs if isinstance(each.meta["val"], torch.Tensor)]
    numbers = [each for each in inputs if each not in later]
    for each in (*sorted(kept, key=inputs.index), *numbers, *reversed(later)):
        if not missing.isdisjoint(found := _defined(each.meta["val"])):
            missing -= found
            more.add(each)
    return more


def _symbols(value: Any) -> set[Any]:
    """The symbols in a number, or in a tensor's sizes and strides."""
    return {symbol for each in _expressions(value) for symbol in each.free_symbols}


def _defined(value: Any) -> set[Any]:
    return {each for each in _expressions(value) if each.is_Symbol}


def _expressions(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _expressions(each)
    elif isinstance(value, torch.Tensor):
        yield from _expressions([*value.shape, *value.stride(), value.storage_offset()])
    elif isinstance(value, torch.SymInt | torch.SymFloat):
        yield value.node.expr


def _needs(module: GraphModule, first: int) -> list[list[int]]:
    inputs = module.graph.find_nodes(op="placeholder")
    hangs = _hangs(module, {each: 1 << i for i, each in enumerate(inputs[first:])})
    every = (1 << len(inputs) - first) - 1
    used: dict[Node, int] = dict.fromkeys(module.graph.nodes, 0)  # by which tangents' ways
    for node in reversed(module.graph.nodes):
        for each in node.all_input_nodes:
            by = every if node.op == "output" else used[node]
            used[each] |= by & ((hangs[each] if node.op == "output" else hangs[node]) or every)
    count = len(inputs) - first
    return [[i for i, x in enumerate(inputs[:first]) if used[x] >> t & 1] for t in range(count)]


def _gone(module: GraphModule, missing: set[Node], tangents: set[Node]) -> set[Node]:
    """What hangs on tangents, and only on such as are missing."""
    hangs = _hangs(module, {node: 1 if node in missing else 2 for node in tangents})
    return {node for node, found in hangs.items() if found == 1}


def _hangs(module: GraphModule, bits: Mapping[Node, int]) -> dict[Node, int]:
    """The bits of all that each node comes from."""
    hangs: dict[Node, int] = {}
    for node in module.graph.nodes:
        sources = (hangs[each] for each in node.all_input_nodes)
        hangs[node] = functools.reduce(operator.or_, sources, bits.get(node, 0))
    return hangs


def _other_summand(node: Node, lost: Sequence[Node]) -> Node | None:
    """What a sum comes to if one of its two summands is zero, where that is a summand as it is."""
    if node.target is not aten.add.Tensor or len(lost) != 1 or node.kwargs:
        return None
    kept = [each for each in node.args if each is not lost[0]]
    if len(kept) != 1 or not isinstance(kept[0], Node):
        return None
    return kept[0] if _layout(kept[0]) == _layout(node) else None


def _layout(node: Node) -> Any:
    value = node.meta["val"]
    return value.shape, value.stride(), value.dtype


def _zeros(graph: Graph, like: Any) -> Node | None:
    """Zeros as they would lie in memory; None where that varies."""
    if not isinstance(like, torch.Tensor):
        return None
    sizes, strides = list(like.shape), list(like.stride())
    if not all(type(number) is int for number in (*sizes, *strides)):
        return None
    about: dict[str, Any] = {
        "dtype": like.dtype,
        "layout": like.layout,
        "device": like.device,
        "pin_memory": False,
    }
    if like.is_contiguous():
        made = graph.call_function(aten.full.default, (sizes, 0), about)
        made.meta["val"] = like
        return made
    pairs = zip(sizes, strides, strict=True)
    count = 1 + sum((size - 1) * stride for size, stride in pairs)
    flat = graph.call_function(aten.full.default, ([count], 0), about)
    flat.meta["val"] = like.new_empty(count)
    made = graph.call_function(aten.as_strided.default, (flat, sizes, strides, 0))
    made.meta["val"] = like
    return made


def with_own_memory(module: GraphModule) -> GraphModule:
    """The graph with no gradient that is a view of another: autograd would take both for its own,
    and add to both where it adds to one."""
    (output,) = module.graph.find_nodes(op="output")
    results: list[Any] = list(output.args[0])
    found = dict.fromkeys(each for each in results if isinstance(each, Node))
    memory = Counter(map(_memory, found))
    for node in found:
        if _memory(node) is not None and memory[_memory(node)] > 1 and node.op != "placeholder":
            memory[_memory(node)] -= 1
            with module.graph.inserting_before(output):
                copied = module.graph.call_function(aten.clone.default, (node,))
            copied.meta = dict(node.meta)
            results = [copied if each is node else each for each in results]
    output.args = (tuple(results),)
    module.recompile()
    return module


def _memory(node: Node) -> int | None:
    """What tells the memory of a tensor from other memory, if each element has a place of its own,
    as autograd wants of what it keeps."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    if not torch._prims_common.is_non_overlapping_and_dense_or_false(value):
        return None
    memory: int = value.untyped_storage()._cdata
    return memory


def _keep_with(keep: Keep, about: Note, part: Note) -> None:
    keep({**part, **about})

"""Results of one graph that come from other results of it: autograd sees the way between them.

AOTAutograd gives all results of a graph one node. Autograd then knows of no way from a loss to
features that the same graph returned: ``retain_grad()``, a hook and ``torch.autograd.grad(loss,
features)`` would find nothing. So each such result gets a node of its own, with a way to those
that it comes from. Gradients pass these nodes as they are, unless somebody looks at one of the
results on the way. Then what it has of a later result's gradient is computed in eager PyTorch, and
taken off again behind it, because the graph's own node reckons with that way too.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from dynacap.backends.native.aten.flows import flows, has_gradient, in_one_memory
from dynacap.fxlite import Graph, Node
from dynacap.fxlite.effects import mutates
from dynacap.fxlite.risks import storage_of, written_by

# Runs the graph of a call again, with the values given for some of its nodes: all its results.
RunFrom = Callable[[Any, Mapping[Node, Any]], Sequence[Any]]


class Links:
    """Which results of a graph come from which others, directly."""

    def __init__(self, graph: Graph, run_from: RunFrom) -> None:
        self.nodes = dict(enumerate(_returned(graph)))
        self.run_from = run_from
        self._graph = graph
        self._places = _places_of(graph, self.nodes)
        self._sources: Mapping[int, frozenset[int]] | None = None

    def link(self, call: Any, outputs: Sequence[Any]) -> Sequence[Any]:
        """The results of a call, those that come from one another with nodes of their own."""
        if self._sources is None:
            views = in_one_memory(call.metadata)
            alone = {node: at for node, at in self._places.items() if at not in views}
            self._sources = _ways(self._graph, alone) if len(alone) > 1 else {}
        if not self._sources:
            return outputs
        linked = list(outputs)
        seen, places = _Seen(), set[int]()
        for place, sources in self._sources.items():
            output = linked[place]
            if not isinstance(output, torch.Tensor) or output.grad_fn is None:
                continue
            found = [source for source in sources if source in places]
            with torch.enable_grad():  # a part of the graph had it, whatever the call is made under
                linked[place] = _Link.apply(  # type: ignore[no-untyped-call]
                    output, _probe(), self, place, call, seen, found, *(linked[i] for i in found)
                )
            places.add(place)
        return linked

    def gradients(
        self, place: int, call: Any, given: Mapping[int, torch.Tensor], grad: torch.Tensor
    ) -> Sequence[Any]:
        """What those results have of another's gradient."""
        again = torch.is_grad_enabled()
        values = {
            self.nodes[i]: h.view_as(h) if again else h.detach().requires_grad_()
            for i, h in given.items()
        }
        result = self.run_from(call, values)[place]
        return torch.autograd.grad(
            result, list(values.values()), grad, create_graph=again, allow_unused=True
        )


class _Seen:
    """What backward passes through the results of one call have found so far."""

    def __init__(self) -> None:
        self.given: dict[tuple[int, int], torch.Tensor] = {}
        self._task, self._answer = -1, False
        self._asked = set[int]()

    def looked_at(self, link: Any) -> bool:
        """Whether somebody looks at a gradient of a result before this one, as far as can be told:
        where gradients of chosen tensors are asked for, all may be among them."""
        task = torch._C._current_graph_task_id()
        if self._task != task:
            self._task, self._asked = task, set[int]()
            probe: Any = _probe().grad_fn
            self._answer = not torch._C._will_engine_execute_node(probe)
        links = [link]
        while links and not self._answer:
            link = links.pop()
            if id(link) not in self._asked and link.kept is not None:
                self._asked.add(id(link))
                self._answer = any(map(_is_watched, link.kept[1]))
                links += [before for before, _ in link.next_functions[2:]]
        return self._answer


class _Link(torch.autograd.Function):
    """A result as it is, with ways to the results that it comes from."""

    @staticmethod
    def forward(ctx: Any, output: Any, probe: Any, *rest: Any) -> Any:
        ctx.set_materialize_grads(False)
        links, place, call, seen, found, *sources = rest
        ctx.links, ctx.place, ctx.seen, ctx.found, ctx.count = links, place, seen, found, len(rest)
        ctx.kept = call, sources, [each._version for each in sources]
        return output.detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        task = torch._C._current_graph_task_id()
        received = ctx.seen.given.pop((task, ctx.place), None)
        ways = _shares(ctx, task, grad) if ctx.kept is not None and grad is not None else ()
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            ctx.kept = None  # as the tensors saved for this pass
        if received is not None and grad is not None:
            grad = None if grad is received else grad - received
        before = ctx.count - len(ctx.found)
        return (grad, None, *(None for _ in range(before)), *(ways or (None for _ in ctx.found)))


def _shares(ctx: Any, task: int, grad: torch.Tensor) -> Sequence[Any]:
    """What the results that this one comes from have of its gradient, if somebody looks."""
    call, sources, versions = ctx.kept
    changed = [each._version for each in sources] != versions
    if not sources or changed or not ctx.seen.looked_at(ctx):
        return ()
    given = dict(zip(ctx.found, sources, strict=True))
    shares: Sequence[Any] = ctx.links.gradients(ctx.place, call, given, grad)
    node = ctx.next_functions[0][0]
    if torch._C._will_engine_execute_node(node):  # then it will be taken off again
        for place, share in zip(ctx.found, shares, strict=True):
            if share is not None:
                before = ctx.seen.given.get((task, place))
                ctx.seen.given[task, place] = share if before is None else before + share
    return shares


@functools.cache
def _probe() -> torch.Tensor:
    """Its node runs in a backward pass through a link, unless that asks for chosen gradients."""
    with torch.enable_grad():
        return torch.zeros((), requires_grad=True).view(())


def _is_watched(result: torch.Tensor) -> bool:
    return result.retains_grad or bool(result._backward_hooks)


def _returned(graph: Graph) -> Iterable[Any]:
    returned: Iterable[Any] = graph.output_node().args[0]
    return returned


def _places_of(graph: Graph, nodes: Mapping[int, Any]) -> dict[Node, int]:
    """The places of the results of operators that have gradients.

    Left out is what shares memory with an argument or another result, or is changed later, as far
    as the graph tells: of views that are made where nothing is changed it does not.
    """
    memory = Counter(storage_of(node) for node in nodes.values() if isinstance(node, Node))
    taken = {storage_of(node) for node in graph.placeholders}
    taken.update(
        storage_of(each) for node in graph.nodes if mutates(node) for each in written_by(node)
    )
    return {
        node: place
        for place, node in nodes.items()
        if isinstance(node, Node)
        and node.op.startswith("call_")
        and has_gradient(node)
        and memory[storage_of(node)] == 1
        and storage_of(node) not in taken
    }


def _ways(graph: Graph, places: Mapping[Node, int]) -> dict[int, frozenset[int]]:
    """For each of these results that takes part, in order, the results that it comes from."""
    found = flows(graph, places)
    ways = {place: found[node] for node, place in places.items()}
    used = frozenset[int]().union(*ways.values())
    return {
        places[node]: found[node]
        for node in graph.nodes
        if node in places and (found[node] or places[node] in used)
    }

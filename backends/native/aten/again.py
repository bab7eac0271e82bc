"""A compiled graph where AOTAutograd does less than eager PyTorch: errors, gradients of gradients.

A call that raises has changed nothing yet, so the graph runs eagerly, which raises at the right
place, or does not.  AOTAutograd makes one backward pass; where its result is to have a gradient in
turn (``create_graph=True``), the graph is run once more, eagerly, and autograd goes back through
that. What a call changes for good is copied before, where it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from dynacap.backends.native.aten.flows import VIEWS_OF_WHAT_IS_MADE
from dynacap.backends.native.aten.functions import Reads
from dynacap.backends.native.aten.linked import Links
from dynacap.backends.native.aten.parts import Backward
from dynacap.backends.native.aten.passes import Passes
from dynacap.backends.torch_state import current_state, hooks_of_saved_tensors, restore_state
from dynacap.fxlite import Graph, GraphModule, Interpreter, Node
from dynacap.fxlite.effects import is_random, mutates
from dynacap.fxlite.risks import is_foreign, plain_name, storage_of, written_by

Run = Callable[..., Any]

_NORMALIZE = ("batch_norm", "instance_norm")
_SMALL = 1 << 16  # numbers of an argument that are copied before a call changes it


def with_eager(
    compiled: Run, graph_module: GraphModule, eager: Run, reads: Reads, backward: Backward | None
) -> Run:
    """``compiled``, with ``eager`` where it cannot do what that does."""
    again = _Again(graph_module, reads, backward)

    def call(*args: Any) -> Any:
        if again.refuses(args):
            return eager(*args)
        random = again.random_state()
        before = again.before(args)
        try:
            outputs = compiled(*args)
        except Exception:
            if again.runs_once or hooks_of_saved_tensors():
                raise
            outputs = None  # eager begins outside, where no other exception is being handled
        if outputs is None:
            return eager(*args)
        made = again.remember(args, before, outputs, random)
        return outputs if made is None else again.links.link(made, outputs)

    return call


class _Call(NamedTuple):
    """What it takes to run a call again: its arguments, their versions, the random state; and what
    AOTAutograd knows of its graph.

    The version of an argument that is a copy is None.
    """

    args: Sequence[Any]
    versions: list[int | None]
    random: torch.Tensor | None
    metadata: Any


class _With(Interpreter):
    """Runs a graph with given values of some nodes, which run all the same: they may draw."""

    def __init__(self, module: GraphModule, values: Mapping[Node, Any]) -> None:
        super().__init__(module)
        self._values = values

    def run_node(self, node: Node) -> Any:
        value = super().run_node(node)
        return self._values.get(node, value)


class _Again:
    """Runs the calls of one graph once more."""

    def __init__(self, graph_module: GraphModule, reads: Reads, backward: Backward | None) -> None:
        graph = graph_module.graph
        self._reads = reads
        self._forward = graph_module.on_call
        self._state = current_state()
        self._draws = any(node.op.startswith("call_") and is_random(node) for node in graph.nodes)
        writes = list(writes_of(graph))
        self._changed = {index for index, _ in writes}
        self._spoiled = {index for index, only_counts in writes if not only_counts}
        self.links = Links(graph, self.run_from)
        self._passes = Passes(graph, backward) if backward is not None else None
        self._module = graph_module
        self.runs_once = any(map(is_foreign, graph.nodes))  # code that is not torch's

    def refuses(self, args: tuple[Any, ...]) -> bool:
        """Whether eager refuses a change, which AOTAutograd makes before it is refused; or the
        program's own backward passes would do something else by now."""
        return any(args[index].is_inference() for index in self._changed) or self._reads.changed()

    def random_state(self) -> torch.Tensor | None:
        """The state to draw the same random numbers from, if any are drawn."""
        return torch.default_generator.get_state() if self._draws else None

    def before(self, args: Sequence[Any]) -> tuple[Sequence[Any], list[int | None] | None] | None:
        """The arguments as they are now, copies of those that the call will spoil, and versions;
        None where a copy would be large, or gradients go back through the change."""
        if not self._spoiled:
            return args, None
        spoiled = [args[index] for index in self._spoiled]
        if any(each.requires_grad or each.numel() > _SMALL for each in spoiled):
            return None
        kept = [arg.clone() if i in self._spoiled else arg for i, arg in enumerate(args)]
        return kept, list(map(_version, args))

    def remember(
        self, args: Sequence[Any], before: Any, outputs: Any, random: torch.Tensor | None
    ) -> _Call | None:
        """Note at the backward pass of a call what it was made with, if it can be run again."""
        node = _backward_node(outputs)
        if node is None or self._passes is None:
            return None
        node.materialize_grads = False  # a pass is told which results have no gradient
        self._have_backward(node._forward_cls)
        if before is None:
            return None
        kept, earlier = before
        versions = list(map(_version, args))
        for index, (now, then) in enumerate(zip(versions, earlier or versions, strict=True)):
            if index in self._spoiled:
                versions[index] = None
            elif now != then and index not in self._changed:
                return None  # it shares memory with what was changed
        node.dynacap_call = call = _Call(kept, versions, random, node._forward_cls.metadata)
        return call

    def _have_backward(self, function: Any) -> None:
        if "dynacap_again" in vars(function):
            return
        function.dynacap_again = self
        plain, boxed = function.backward, function.boxed_grads_call
        once = plain if boxed else lambda ctx, grads: plain(ctx, *grads)
        passes = self._passes
        assert passes is not None

        def backward(ctx: Any, *grads: Any) -> Any:
            call = getattr(ctx, "dynacap_call", None)
            given = grads[0] if boxed else list(grads)
            if call is not None and (torch.is_grad_enabled() or self._reads.changed()):
                return self._gradients(call, given)
            given[:] = map(_as_it_lies, given)
            return passes.run(once, ctx, function.metadata, given)

        function.backward = staticmethod(backward)

    def _gradients(self, call: _Call, grads: Sequence[Any]) -> tuple[Any, ...]:
        with torch.enable_grad():
            inputs = self._inputs(call)
        wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
        outputs = self._run(self._forward, inputs, call.random)
        pairs = [
            (output, grad)
            for output, grad in zip(_returned(call.metadata, outputs), grads, strict=True)
            if isinstance(output, torch.Tensor) and output.requires_grad and grad is not None
        ]
        found = iter(
            torch.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [grad for _, grad in pairs],
                create_graph=torch.is_grad_enabled(),
                allow_unused=True,
            )
        )
        have = (isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        return tuple(next(found) if each else None for each in have)

    def _inputs(self, call: _Call) -> list[Any]:
        """The arguments, as other tensors: hooks on them are for the gradients given here."""
        inputs: list[Any] = []
        for index, (arg, version) in enumerate(zip(call.args, call.versions, strict=True)):
            if version is not None and _version(arg) != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an"
                    f" inplace operation: argument {index} of a compiled graph is at version"
                    f" {_version(arg)}; expected version {version} instead"
                )
            if not isinstance(arg, torch.Tensor):
                inputs.append(arg)
            else:
                inputs.append(arg.clone() if index in self._changed else arg.view_as(arg))
        return inputs

    def run_from(self, call: _Call, values: Mapping[Node, Any]) -> Sequence[Any]:
        """The outputs of a call, run again with those values of some nodes."""
        run = _With(self._module, values).run
        outputs: Sequence[Any] = self._run(run, self._inputs(call), call.random)
        return outputs

    def _run(self, run: Run, inputs: Sequence[Any], random: torch.Tensor | None) -> Any:
        """The graph's outputs, in the state that the call found."""
        state, now = current_state(), torch.default_generator.get_state()
        try:
            restore_state(self._state)
            if random is not None:
                torch.default_generator.set_state(random)
            return run(*inputs)
        finally:
            restore_state(state)
            torch.default_generator.set_state(now)


def _backward_node(outputs: Any) -> Any:
    """The backward pass that AOTAutograd has given a call's outputs, if there is one."""
    for output in outputs:
        node = output.grad_fn if isinstance(output, torch.Tensor) else None
        while node is not None and not hasattr(node, "_forward_cls"):  # views of an output
            following = node.next_functions
            node = following[0][0] if following else None
        if node is not None and hasattr(node._forward_cls, "compiled_bw"):
            return node
    return None


def _as_it_lies(grad: Any) -> Any:
    """A gradient with its elements in memory, where the backward graph reads them: it was traced
    with one that is not to be conjugated or negated first."""
    return grad.resolve_conj().resolve_neg() if isinstance(grad, torch.Tensor) else grad


def _version(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return None
    return value._version


def _returned(metadata: Any, outputs: Sequence[Any]) -> list[Any]:
    """What AOTAutograd's function returns, as far as it comes from these outputs: changed inputs,
    the outputs, and what several of those are views of."""
    changed = [None] * metadata.num_mutated_inp_runtime_indices
    bases: dict[int, Any] = {}
    for info, output in zip(metadata.output_info, outputs, strict=True):
        if info.output_type in VIEWS_OF_WHAT_IS_MADE:
            bases.setdefault(info.base_idx, output._base)
    return [*changed, *outputs, *(bases.get(i) for i in range(metadata.num_intermediate_bases))]


def writes_of(graph: Graph) -> Iterator[tuple[int, bool]]:
    """The position of each input that is written to, and whether it is for the sake of that input
    alone: the statistics of normalizations, and counters.  What else is changed cannot be run from
    again.
    """
    places = {storage_of(node): i for i, node in enumerate(graph.placeholders)}
    places.pop(None, None)  # numbers
    for node in graph.nodes:
        if not node.op.startswith("call_") or not mutates(node):
            continue
        norm = plain_name(node.target).endswith(_NORMALIZE)
        for written in node.args[1:3] if norm else written_by(node):
            index = places.get(storage_of(written)) if isinstance(written, Node) else None
            if index is not None:
                whole = written is graph.placeholders[index]
                yield index, whole and (norm or not node.users)

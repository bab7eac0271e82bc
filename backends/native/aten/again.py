"""A compiled graph where AOTAutograd does less than eager PyTorch: errors, gradients of gradients.

A call that raises has changed nothing yet, so the graph runs eagerly, which raises at the right
place, or does not.  AOTAutograd makes one backward pass; where its result is to have a gradient in
turn (``create_graph=True``), the graph is run once more, eagerly, and autograd goes back through
that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch._functorch._aot_autograd.schemas import OutputType

from dynacap.backends.torch_state import current_state, hooks_of_saved_tensors, restore_state
from dynacap.fxlite import Graph, GraphModule, Node
from dynacap.fxlite.effects import is_random, mutates
from dynacap.fxlite.risks import is_foreign, plain_name, storage_of, written_by

Run = Callable[..., Any]

_VIEWS_OF_WHAT_IS_MADE = (
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
)
_NORMALIZE = ("batch_norm", "instance_norm")


def with_eager(compiled: Run, graph_module: GraphModule, eager: Run) -> Run:
    """``compiled``, with ``eager`` where it cannot do what that does."""
    again = _Again(graph_module)

    def call(*args: Any) -> Any:
        if again.refuses(args):
            return eager(*args)
        random = again.random_state()
        try:
            outputs = compiled(*args)
        except Exception:
            if again.runs_once or hooks_of_saved_tensors():
                raise
            outputs = None  # eager begins outside, where no other exception is being handled
        if outputs is None:
            return eager(*args)
        again.remember(args, outputs, random)
        return outputs

    return call


class _Call(NamedTuple):
    """What it takes to run a call again: its arguments, their versions, the random state."""

    args: tuple[Any, ...]
    versions: list[int | None]
    random: torch.Tensor | None


class _Again:
    """Runs the calls of one graph once more."""

    def __init__(self, graph_module: GraphModule) -> None:
        graph = graph_module.graph
        self._forward = graph_module.forward
        self._state = current_state()
        self._draws = any(node.op.startswith("call_") and is_random(node) for node in graph.nodes)
        writes = list(writes_of(graph))
        self._changed = {index for index, _ in writes}
        self._keeps_inputs = all(only_counts for _, only_counts in writes)
        self.runs_once = any(map(is_foreign, graph.nodes))  # code that is not torch's

    def refuses(self, args: tuple[Any, ...]) -> bool:
        """Whether eager refuses a change, which AOTAutograd makes before it is refused."""
        return any(args[index].is_inference() for index in self._changed)

    def random_state(self) -> torch.Tensor | None:
        """The state to draw the same random numbers from, if any are drawn."""
        return torch.default_generator.get_state() if self._draws else None

    def remember(self, args: tuple[Any, ...], outputs: Any, random: torch.Tensor | None) -> None:
        """Note at the backward pass of a call what it was made with."""
        node = _backward_node(outputs)
        if node is not None and self._keeps_inputs:
            node.dynacap_call = _Call(args, list(map(_version, args)), random)
            self._have_backward(node._forward_cls)

    def _have_backward(self, function: Any) -> None:
        if "dynacap_again" in vars(function):
            return
        function.dynacap_again = self
        once = function.backward

        def backward(ctx: Any, *grads: Any) -> Any:
            call = getattr(ctx, "dynacap_call", None)
            if call is not None and torch.is_grad_enabled():
                given = grads[0] if function.boxed_grads_call else grads
                return self._gradients(call, function.metadata, given)
            if not torch._C._autograd._get_current_graph_task_keep_graph():
                ctx.dynacap_call = None  # as the tensors saved for this pass
            return once(ctx, *grads)

        function.backward = staticmethod(backward)

    def _gradients(self, call: _Call, metadata: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        inputs = self._inputs(call)
        wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
        outputs = self._run(inputs, call.random)
        pairs = [
            (output, grad)
            for output, grad in zip(_returned(metadata, outputs), grads, strict=True)
            if isinstance(output, torch.Tensor) and output.requires_grad and grad is not None
        ]
        found = iter(
            torch.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [grad for _, grad in pairs],
                create_graph=True,
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

    def _run(self, inputs: Sequence[Any], random: torch.Tensor | None) -> Any:
        """The graph's outputs, in the state that the call found."""
        state, now = current_state(), torch.default_generator.get_state()
        try:
            restore_state(self._state)
            torch._C._set_grad_enabled(True)
            if random is not None:
                torch.default_generator.set_state(random)
            return self._forward(*inputs)
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
        if info.output_type in _VIEWS_OF_WHAT_IS_MADE:
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

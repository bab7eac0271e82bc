"""Operators that are there for their effect, such as a check that raises, called as themselves.

AOTAutograd wraps them, and threads tokens from one to the next, so that no pass over the graph
drops them or changes their order.  Here a graph's calls run in its order.
"""

from __future__ import annotations

import operator

import torch
from torch._higher_order_ops.effects import with_effects
from torch.fx import GraphModule, Node

_MAKE, _END = torch.ops.prims._make_token.default, torch.ops.prims._sink_tokens.default


def drop_tokens(module: GraphModule) -> None:
    """Put each operator that is wrapped in the place of its wrapper."""
    nodes = [node for node in module.graph.nodes if node.target in (with_effects, _MAKE, _END)]
    for node in reversed(nodes):
        if node.target is with_effects:
            _unwrap(node)
        module.graph.erase_node(node)
    if nodes:
        module.recompile()


def _unwrap(node: Node) -> None:
    _, target, *args = node.args
    if not isinstance(target, torch._ops.OpOverload):
        raise NotImplementedError(f"{target} is no ATen operator")
    with node.graph.inserting_before(node):
        call = node.graph.call_function(target, tuple(args), node.kwargs)
    _, *results = node.meta["val"]
    several = len(target._schema.returns) > 1
    call.meta = node.meta | {"val": tuple(results) if several else results[0]}
    for item in list(node.users):
        assert item.target is operator.getitem
        position = item.args[1]
        assert isinstance(position, int)
        if position == 0:
            item.graph.erase_node(item)  # a token, whose users are gone
        elif several:
            item.args = (call, position - 1)
        else:
            item.replace_all_uses_with(call)
            item.graph.erase_node(item)

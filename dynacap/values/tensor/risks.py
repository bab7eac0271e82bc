"""Which operations may raise at run time although they did not on fake tensors.

They look at data: indices out of range, matrices that are singular, assertions.  Lack of memory,
which any operation may meet, is not counted.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from dynacap.fxlite.effects import mutates
from dynacap.fxlite.node import Node

# Without the underscore of the in-place form.
_LOOK_AT_DATA = frozenset(
    """gather scatter scatter_add scatter_reduce take take_along_dim put embedding embedding_bag
    nll_loss nll_loss2d cross_entropy one_hot multi_margin_loss multilabel_margin_loss
    ctc_loss binary_cross_entropy multinomial bernoulli binomial normal poisson
    cholesky cholesky_inverse cholesky_solve inverse pinverse lu lu_solve lstsq matrix_power det
    logdet slogdet svd qr geqrf ormqr symeig triangular_solve
    masked_scatter repeat_interleave bincount histc combinations segment_reduce
    pack_padded_sequence pad_packed_sequence vander tensor_split
    unpool max_unpool1d max_unpool2d max_unpool3d backward""".split()
)
_PREFIXES = ("index_", "linalg_", "_linalg", "_assert", "_check", "_foreach_index")
_OWN_NAMESPACES = frozenset({"aten", "prims", "prim"})


def may_raise(node: Node) -> bool:
    """Whether a call may raise by the data that it meets."""
    name = _name(node.target)
    if name in ("getitem", "setitem", "__getitem__", "__setitem__", "index", "index_put"):
        if _indexed_by_tensor(node.args[1] if len(node.args) > 1 else None):
            return True
    elif name in _LOOK_AT_DATA or name.startswith(_PREFIXES):
        return True
    return _is_foreign(node) or (mutates(node) and _overlaps(node))


def _name(target: Any) -> str:
    if isinstance(target, str):
        return target.rstrip("_") if not target.endswith("__") else target
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name.rpartition("::")[2]).rstrip("_")
    return str(getattr(target, "__name__", "")).rstrip("_") or type(target).__name__


def _is_foreign(node: Node) -> bool:
    """An operator that is not torch's own: nothing is known of it."""
    target = node.target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return getattr(target, "namespace", "aten") not in _OWN_NAMESPACES
    module = getattr(target, "__module__", None) or "torch"
    if node.op != "call_function" or target in vars(operator).values():
        return False
    return module.partition(".")[0] not in ("torch", "_operator", "math", "builtins")


def _indexed_by_tensor(key: Any) -> bool:
    if isinstance(key, tuple | list):
        return any(_indexed_by_tensor(part) for part in key)
    if isinstance(key, slice):
        return False
    return isinstance(key, Node)


def _overlaps(node: Node) -> bool:
    """Whether what is written shares memory with something else in the call."""
    storages = [
        value.untyped_storage()._cdata
        for arg in node.all_input_nodes
        if isinstance(value := arg.meta.get("example_value"), torch.Tensor)
        and value.layout is torch.strided
    ]
    return len(storages) != len(set(storages))

"""Which operations may raise at run time although they did not on fake tensors, and which change
something that outlives the graph.

The former look at data: indices out of range, matrices that are singular, assertions.  Lack of
memory, which any operation may meet, is not counted.  As in :mod:`dynacap.fxlite.effects` only
names, schemas and flags are looked at.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Container, Iterable
from typing import Any

from dynacap.fxlite.effects import is_impure, is_random, mutates
from dynacap.fxlite.graph import Graph
from dynacap.fxlite.node import Node, iter_nodes

# Without the underscore of the in-place form.
_LOOK_AT_DATA = frozenset(
    """gather scatter scatter_add scatter_reduce take take_along_dim take_along_axis put
    put_along_axis ndarray_take choose ndarray_choose embedding embedding_bag nll_loss
    nll_loss2d cross_entropy one_hot multi_margin_loss multilabel_margin_loss
    ctc_loss binary_cross_entropy multinomial bernoulli binomial normal poisson
    cholesky cholesky_inverse cholesky_solve inverse pinverse lu lu_solve lstsq matrix_power det
    logdet slogdet svd qr geqrf ormqr symeig triangular_solve
    masked_scatter repeat_interleave bincount histc combinations segment_reduce
    pack_padded_sequence pad_packed_sequence vander tensor_split
    unpool max_unpool1d max_unpool2d max_unpool3d backward""".split()
)
_DIVIDE = frozenset(
    """div divide floor_divide floordiv fmod ifloordiv imod mod remainder rfloordiv rmod""".split()
)
_CHECKS = ("_assert", "_check")  # raise or do nothing
# What torch.func's levels are crossed by, flags and gradients in them: nothing outside is changed.
_CROSS_LEVELS = frozenset(
    """_add_batch_dim _remove_batch_dim _wrap_for_grad _unwrap_for_grad _make_dual _unpack_dual
    requires_grad grad""".split()
)
_PREFIXES = ("index_", "linalg_", "_linalg", "_foreach_index", *_CHECKS)
OWN_NAMESPACES = frozenset({"aten", "prims", "prim"})


def may_raise(node: Node) -> bool:
    """Whether a call may raise by the data that it meets; not if these were ``checked`` before."""
    if node.meta.get("checked"):
        return False
    return _looks_at_data(node) or is_foreign(node) or (mutates(node) and overlaps(node))


def raises_midway(node: Node, outside: Container[int]) -> bool:
    """Whether a call that raises may have changed something outside by then."""
    if node.meta.get("checked") or not (_looks_at_data(node) or is_foreign(node)):
        return False
    return changes_outside(node, outside)


def _looks_at_data(node: Node) -> bool:
    name = plain_name(node.target)
    if name in ("getitem", "setitem", "__getitem__", "__setitem__", "index", "index_put"):
        return _indexed_by_tensor(node.args[1] if len(node.args) > 1 else None)
    return name in _LOOK_AT_DATA or name.startswith(_PREFIXES) or _may_divide_by_zero(node, name)


def _may_divide_by_zero(node: Node, name: str) -> bool:
    """Whether a call raises for zeros among whole numbers, or for a whole number's inverse."""
    dtype = getattr(node.meta.get("example_value", node.meta.get("val")), "dtype", None)
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return False
    name = name.strip("_")
    by = (
        node.args[1]
        if len(node.args) > 1
        else node.kwargs.get("other", node.kwargs.get("exponent"))
    )
    if name in ("pow", "ipow", "rpow"):
        return isinstance(by, int) and by < 0
    return name in _DIVIDE and not (isinstance(by, int) and by != 0)


def changes_outside(node: Node, outside: Container[int]) -> bool:
    """Whether someone outside the graph could notice that a call was made, and made twice.

    ``outside`` are the storages of the graph's inputs: what a graph writes into memory of its own
    is made anew when it runs again.  Random numbers are drawn again too, from the same state.
    """
    name = plain_name(node.target)
    if not is_impure(node) or name in _CROSS_LEVELS or name.startswith(_CHECKS):
        return False
    if not mutates(node):
        return not is_random(node)
    return any(storage_of(written) in outside for written in written_by(node))


def storage_of(node: Node) -> int | None:
    """What tells the memory of a node's result from other memory."""
    value = node.meta.get("example_value")
    if str(getattr(value, "layout", None)) != "torch.strided":
        return None
    storage: int = _without_levels(value).untyped_storage()._cdata
    return storage


def has_detached_results(graph: Graph) -> bool:
    """Whether a result lies in the memory of an argument, from which it, or what it is a view of,
    was detached, and has got a gradient by a change since.

    AOTAutograd makes such results as views of the argument, without that gradient.
    """
    given = {storage_of(node) for node in graph.placeholders} - {None}
    own = {id(node.meta.get("example_value")) for node in graph.placeholders}
    for node in graph.output_node().all_input_nodes:
        value: Any = node.meta.get("example_value")
        if getattr(value, "requires_grad", False) and storage_of(node) in given:
            base = value if value._base is None else value._base
            if id(base) not in own and base.grad_fn is not None:
                return True
    return False


def _without_levels(tensor: Any) -> Any:
    """The tensor below all that transforms of functions (``vmap``, ``grad``) wrapped it in."""
    levels = sys.modules["torch"]._C._functorch
    while levels.is_functorch_wrapped_tensor(tensor):
        tensor = levels.get_unwrapped(tensor)
    return tensor


def written_by(node: Node) -> Iterable[Node]:
    """The arguments that a call writes to, or more, where that is not clear."""
    out = node.kwargs.get("out")
    if out is not None:
        return iter_nodes(out)
    first_only = node.op == "call_method" or isinstance(node.target, types.BuiltinFunctionType)
    if first_only and node.args:
        return iter_nodes(node.args[0])
    return node.all_input_nodes


def plain_name(target: Any) -> str:
    """The name of what is called, without the underscore of an in-place form."""
    if isinstance(target, str):
        return target.rstrip("_") if not target.endswith("__") else target
    schema: Any = getattr(target, "_schema", None)
    if hasattr(schema, "name"):
        return str(schema.name.rpartition("::")[2]).rstrip("_")
    return str(getattr(target, "__name__", "")).rstrip("_") or type(target).__name__


def is_foreign(node: Node) -> bool:
    """An operator that is not torch's own: nothing is known of it."""
    target = node.target
    if isinstance(getattr(target, "_schema", None), str):  # made by torch.library.custom_op
        return True
    if hasattr(target, "_schema") or hasattr(target, "overloads"):
        return getattr(target, "namespace", "aten") not in OWN_NAMESPACES
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


def overlaps(node: Node) -> bool:
    """Whether what is written shares memory with something else in the call."""
    storages = [storage for arg in node.all_input_nodes if (storage := storage_of(arg)) is not None]
    return len(storages) != len(set(storages))

"""``torch.vmap``: the traced function runs on batched fakes, one level of functorch deeper.

The level is entered and left by nodes of the graph; what enters it is batched, and what leaves it
unbatched, by nodes too, as torch's own implementation does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from torch import func
from torch._functorch import eager_transforms, predispatch, vmap as vmap_file

from dynacap.backends.torch_state import leave_transforms, transform_depth
from dynacap.values.base import Const, Value, constant_or
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.function import FunctionValue
from dynacap.values.natives import native, native_code
from dynacap.values.tensor import breaks
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

_REFUSAL = breaks.Refusal(
    breaks.TRANSFORM.reason, "pass tensors, and tuples or lists of them, with dims to match"
)
Leaf = Callable[[TensorValue, int], Value]


@native(predispatch.lazy_load_decompositions)
def load_decompositions(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Torch's own preparation, once in a process."""
    predispatch.lazy_load_decompositions()
    return Const(None)


@native(eager_transforms.grad_impl, eager_transforms.grad_and_value_impl)
def gradient(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> NoReturn:
    """What ``torch.func.grad`` gave is called: it runs as it is, as a whole."""
    breaks.refuse(t, breaks.TRANSFORM, "what torch.func.grad gave is called")


for _transform in (func.jacrev, func.jacfwd, func.functionalize):

    @native_code(_transform(len).__code__)
    def transformed(
        t: Tracer, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
    ) -> NoReturn:
        """The same of the other transforms."""
        breaks.refuse(t, breaks.TRANSFORM, "what a transform gave is called")


@native(vmap_file.vmap_impl)
def vmap_call(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``vmap(func, in_dims, out_dims, randomness, chunk_size=...)(*args, **kwargs)``."""
    func, in_dims, out_dims, randomness, chunk_size, *operands = args
    if constant_or(chunk_size, func) is not None:
        _refuse(t, "in chunks")
    predispatch.lazy_load_decompositions()
    sizes: set[int] = set()

    def measure(value: TensorValue, dim: int) -> Value:
        if not -value.fake.dim() <= dim < value.fake.dim():
            _refuse(t, f"over dimension {dim} of {value.describe()}")
        sizes.add(value.fake.shape[dim])
        return value

    inputs = TupleValue(operands)
    _map(t, inputs, in_dims, measure)
    if len(sizes) != 1:
        _refuse(t, f"over sizes {sorted(sizes)}")
    (size,) = sizes
    level = _enter(t, size, randomness.constant())

    def batch(value: TensorValue, dim: int) -> Value:
        at = Const(dim % value.fake.dim())
        return t.tensor_call(predispatch._add_batch_dim, [value, at, level], {})

    def unbatch(value: TensorValue, dim: int) -> Value:
        operands = [value, level, Const(size), Const(dim)]
        return t.tensor_call(predispatch._remove_batch_dim, operands, {})

    batched = _map(t, inputs, in_dims, batch)
    assert isinstance(batched, TupleValue)
    result = t.call(func, batched.items, kwargs)
    unbatched = _map(t, result, out_dims, unbatch, strict=True)
    _leave(t)
    return unbatched


def _map(t: Tracer, value: Value, dims: Value, leaf: Leaf, *, strict: bool = False) -> Value:
    """``leaf`` of each tensor and its dimension; ``strict``: there must be nothing else."""
    dim = constant_or(dims, dims)
    if dim is None and not strict:
        return value
    if isinstance(value, TensorValue) and type(dim) is int:
        return leaf(value, dim)
    if type(value) in (TupleValue, ListValue) and value.cls in (tuple, list):
        items = [t.force(item) for item in value.items]  # type: ignore[attr-defined]
        parts = [_map(t, item, d, leaf, strict=strict) for item, d in _zip(t, items, dims)]
        return TupleValue(parts) if value.cls is tuple else ListValue(parts)
    return _refuse(t, f"over a {value.describe()} with dims {dims.describe()}")


def _zip(t: Tracer, items: list[Value], dims: Value) -> list[tuple[Value, Value]]:
    if type(constant_or(dims, dims)) is int:
        return [(item, dims) for item in items]
    if not isinstance(dims, TupleValue | ListValue) or len(dims.items) != len(items):
        _refuse(t, f"of {len(items)} values with dims {dims.describe()}")
    return list(zip(items, [t.force(dim) for dim in dims.items], strict=True))


def _enter(t: Tracer, size: int, randomness: str) -> Value:
    family: Any = t.tensors
    depth = transform_depth()
    level = predispatch._vmap_increment_nesting(size, randomness)
    family.when_capture_ends(lambda: leave_transforms(depth))
    family.add_state_node(t, predispatch._vmap_increment_nesting, (size, randomness))
    return Const(level)


def _leave(t: Tracer) -> None:
    family: Any = t.tensors
    predispatch._vmap_decrement_nesting()
    family.add_state_node(t, predispatch._vmap_decrement_nesting, ())


def _refuse(t: Tracer, what: str) -> NoReturn:
    breaks.refuse(t, _REFUSAL, f"vmap {what}")

"""The guard on a tensor's metadata."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dynacap.guards.kinds import Origin, SourceGuard, register
from dynacap.guards.ref import Ref, describe
from dynacap.guards.show import show
from dynacap.guards.source import Source
from dynacap.guards.tensor import TensorFacts, tensor_facts

Dims = tuple[int | None, ...]  # None: any size


@register
@dataclass(frozen=True)
class Tensor(SourceGuard):
    """All that a graph relies on in a tensor: its class and its metadata, dimension by dimension.

    A dimension of None may have any size or stride.  A check that asks for ``is_inference`` of
    None does not look.
    """

    kind = "tensor"
    expected: Ref
    dtype: Any
    device: Any
    layout: object
    shape: Dims
    stride: Dims | None
    requires_grad: bool
    is_conj: bool = False
    is_neg: bool = False
    is_inference: bool | None = None
    origin: Origin | None = field(default=None, compare=False)

    @classmethod
    def of(cls, source: Source, tensor: object, origin: Origin | None = None) -> "Tensor":
        """The guard that demands what ``tensor`` is now."""
        return cls(source, *expected_of(tensor), origin=origin)  # type: ignore[misc]

    @property
    def refs(self) -> tuple[Ref, ...]:
        return (self.expected,)

    def holds(self, *values: object) -> bool:
        if not self.expected.refers_to(type(values[0])):
            return False
        facts = tensor_facts(values[0])
        return facts is not None and not self._differences(facts)

    def _differences(self, facts: TensorFacts) -> list[str]:
        """The names of the facts that are not as expected."""
        wrong = [
            name
            for name in ("dtype", "device", "layout", "requires_grad", "is_conj", "is_neg")
            if getattr(self, name) != getattr(facts, name)
        ]
        if not _fits(self.shape, facts.shape):
            wrong.append("shape")
        elif not _fits(self.stride, facts.stride):
            wrong.append("stride")
        if self.is_inference is not None and self.is_inference != facts.is_inference:
            wrong.append("is_inference")
        return wrong

    def expectation(self) -> str:
        notes = [f"shape {_dims(self.shape)}"]
        if self.stride is not None:
            notes.append(f"stride {_dims(self.stride)}")
        flags = ("requires_grad", "is_conj", "is_neg", "is_inference")
        notes += [name for name in flags if getattr(self, name)]
        where = "" if str(self.layout) == "torch.strided" else f" {self.layout}"
        return f"is a {self.expected!r} of {self.dtype} on {self.device}{where}, {', '.join(notes)}"

    def finding(self, *values: object) -> str:
        value = values[0]
        if not self.expected.refers_to(type(value)):
            return show(value) if tensor_facts(value) is None else f"a {describe(type(value))}"
        facts = tensor_facts(value)
        if facts is None:
            return "a tensor that has no such metadata"
        return ", ".join(
            f"{name} {_dims(found) if isinstance(found, tuple) else found}"
            for name in self._differences(facts)
            for found in [getattr(facts, name)]
        )


def expected_of(tensor: object, fake: Any = None) -> tuple[Any, ...]:
    """What the guard expects of a tensor as it is now, in the order of the guard's fields; of its
    sizes and strides only those that are no symbols in ``fake``.
    """
    facts = tensor_facts(tensor)
    if facts is None:
        raise TypeError(f"{describe(tensor)} has no metadata that a guard could hold it to")
    expected: TensorFacts = facts._replace(is_inference=None)  # type: ignore[arg-type]
    if fake is not None:
        shape, stride = _known(fake.shape, facts.shape), _known(fake.stride(), facts.stride or ())
        expected = expected._replace(shape=shape, stride=stride)  # type: ignore[arg-type]
    return Ref(type(tensor)), *expected


def _known(sizes: Sequence[Any], now: tuple[int, ...]) -> Dims:
    return tuple(one if type(size) is int else None for size, one in zip(sizes, now, strict=True))


def _fits(wanted: Dims | None, found: tuple[int, ...] | None) -> bool:
    if wanted is None or found is None:
        return wanted is found
    if len(wanted) != len(found):
        return False
    return all(want is None or want == size for want, size in zip(wanted, found, strict=True))


def _dims(dims: Dims | None) -> str:
    return (
        str(dims) if dims is None else f"({', '.join('?' if d is None else str(d) for d in dims)})"
    )

"""The attributes of a graph module: what ``get_attr`` and ``call_module`` nodes name."""

from collections.abc import Iterator, Mapping
from typing import Any

from dynacap.errors import GraphError

_MISSING = object()


class Attributes:
    """A tree of plain objects, so that ``self.layer.weight`` in generated code is that expression.

    It is an object of its own, apart from the graph module: the compiled function holds it, and
    must not keep the graph alive.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        # Shorter names first: a module before what is inside it.
        for target in sorted(values, key=lambda name: name.count(".")):
            set_attribute(self, target, values[target])


def set_attribute(owner: Any, target: str, value: object) -> None:
    """Set a dotted attribute, with plain objects made on the way as needed."""
    *path, last = target.split(".")
    for name in path:
        inner = getattr(owner, name, _MISSING)
        if inner is _MISSING:
            inner = Attributes({})
            setattr(owner, name, inner)
        owner = inner
    if getattr(owner, last, _MISSING) is not value:
        setattr(owner, last, value)


def get_attribute(owner: object, target: str) -> Any:
    """A dotted attribute; a GraphError that says how far it got if there is none."""
    value = owner
    for name in target.split("."):
        value = getattr(value, name, _MISSING)
        if value is _MISSING:
            raise GraphError(
                f"looked for attribute {target!r} of a graph module and found no {name!r}; give"
                " it to GraphModule(root, graph) as part of root, or erase the node"
            )
    return value


def leaves(owner: Attributes, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every attribute with its dotted name, the plain objects on the way left out."""
    for name, value in vars(owner).items():
        if isinstance(value, Attributes):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value

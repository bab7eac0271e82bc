"""How torch asks the classes of a call's operands what it gives (``__torch_function__``).

Whom it asks, and with what, torch itself says: the call is made on stand-ins, which note it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from dynacap.guards.raw import MISSING, type_lookup

PLAIN_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter})
BlockWithout: Any = torch._C.DisableTorchFunctionSubclass
_NO_OVERRIDE = (MISSING, torch._C._disabled_torch_function_impl)


def is_capturable(cls: type) -> bool:
    """Whether tensors of a class are memory with sizes, whatever the class adds."""
    return type_lookup(cls, "__torch_dispatch__") is torch._C._disabled_torch_dispatch_impl


def is_asking(cls: type) -> bool:
    """Whether torch's functions ask a class what they give."""
    return cls not in PLAIN_CLASSES and type_lookup(cls, "__torch_function__") not in _NO_OVERRIDE


def in_order(values: Iterable[Any], class_of: Callable[[Any], type]) -> list[Any]:
    """The operands to be asked: one of each class, subclasses before what they derive from."""
    order: list[Any] = []
    for value in values:
        cls = class_of(value)
        if is_asking(cls) and all(cls is not class_of(other) for other in order):
            before = [i for i, other in enumerate(order) if issubclass(cls, class_of(other))]
            order.insert(before[0] if before else len(order), value)
    return order


class _Asked(Exception):
    """What a stand-in was asked; never leaves this module."""


@functools.cache
def _probe(number: int, base: Any) -> type:
    class Probe(base):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, *given: Any) -> Any:
            raise _Asked(*given)

    return Probe


class StandIns:
    """Makes the stand-ins for one call: those of one class have one class, too."""

    def __init__(self) -> None:
        self._probes: dict[type, type] = {}

    def of(self, cls: type) -> Any:
        """What stands for an operand of a class that is asked."""
        of_tensor = issubclass(cls, torch.Tensor)
        probe = _probe(len(self._probes), torch.Tensor if of_tensor else object)
        probe = self._probes.setdefault(cls, probe)
        return torch.empty(()).as_subclass(probe) if of_tensor else probe()

    def classes(self, probes: Sequence[type]) -> list[type]:
        """Which classes these stand-ins' classes stand for."""
        return [cls for each in probes for cls, probe in self._probes.items() if probe is each]


def question(real: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any] | None:
    """Function, classes, operands, and keywords if there are any, with which a call on stand-ins
    asks one of them; None if it asks none."""
    try:
        real(*args, **kwargs) if kwargs else real(*args)
    except _Asked as asked:
        return asked.args
    except Exception:  # the call says so itself when it is captured
        return None
    return None


def field_of(function: Any) -> Any:
    """The field that torch means, where the function that it names reads one; else None."""
    return function.__self__ if type(function) is types.MethodWrapperType else None


def block_without(entered: bool) -> Any:
    """A block in which no class is asked, or its manager only."""
    made = BlockWithout()
    if entered:
        made.__enter__()
    return made

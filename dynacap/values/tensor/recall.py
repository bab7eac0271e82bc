"""What an operation gave the last time it met operands like these.

Running an operation on fake tensors takes 80 to 500 microseconds, and a model does the same few
dozen operations over and over.  What a result looks like follows from the operation, the metadata
of its tensors, its constants and torch's state; so it is kept, process-wide, under all of these.
Making a fake from what is kept takes 15 microseconds.

Not kept: results of what writes in place, what makes tensors from nothing, and what gives an
operand back.  A view that is made from memory shares no storage with its base, which matters only
once something is written in place: before that the views of a capture are made again for real
(:meth:`Recall.settle`).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor

from dynacap.values.base import Const, Known, Value
from dynacap.values.container import ListValue, SliceValue, TupleValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.surface import DUNDERS, is_torch_function
from dynacap.values.tensor.value import TensorValue

if TYPE_CHECKING:
    from dynacap.values.tensor.fake import FakeWorld

MOST = 20_000  # entries; a program that makes more has shapes that change all the time

_empty_strided = torch.empty_strided
_mirror_gradient: Any = torch._mirror_autograd_meta_to  # type: ignore[attr-defined]
_READING = frozenset(
    {f for name, f in DUNDERS.items() if name[2] != "i" or name == "__invert__"}
    | {operator.getitem, getattr}
)
_INPLACE_POSITION = {
    function: list(inspect.signature(function).parameters).index("inplace")
    for name, function in vars(F).items()
    if inspect.isfunction(function) and "inplace" in inspect.signature(function).parameters
}


class Look(NamedTuple):
    """The metadata of one tensor; ``view`` if it shares the storage of an operand."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    view: bool


class Kept(NamedTuple):
    """What an operation gave: a tensor, or a container of the type ``container`` of tensors."""

    looks: tuple[Look, ...]
    container: type | None


class Call(NamedTuple):
    """A call of an operation: what goes into the graph, and its operands as values."""

    op: str
    target: Any
    args: list[Value]
    kwargs: dict[str, Value]


class View(NamedTuple):
    """A call that gave views, to be made again."""

    call: Call
    recording: bool
    result: Any


class NoKey(Exception):
    """An operand cannot be compared with another; never leaves this module."""


_kept: dict[Hashable, Kept | None] = {}


def forget() -> None:
    """Drop everything that is kept."""
    _kept.clear()


def writes(call: Call) -> bool:
    """Whether a call may change an operand in place; true where nothing is known."""
    op, target, args, kwargs = call
    if "out" in kwargs:
        return True
    if op == "call_method":
        return bool(target[-1] == "_" and target[-2:] != "__")
    position = _INPLACE_POSITION.get(target)
    if position is not None:
        wanted = kwargs.get("inplace", args[position] if len(args) > position else None)
        return not (wanted is None or (isinstance(wanted, Const) and not wanted.value))
    if target in _READING:
        return False
    return not is_torch_function(target) or target.__name__[-1] == "_"


class Recall:
    """The memory as one capture uses it."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world
        self._views: list[View] = []
        self._state: Hashable = None

    def state_changed(self) -> None:
        """Torch's state is not what it was when it was last looked at."""
        self._state = None

    def key(self, call: Call) -> Hashable:
        """What decides about the result; None if there is no telling."""
        op, target, args, kwargs = call
        if self._state is None:
            self._state = _state()
        try:
            operands: list[Any] = [_mark(value) for value in args]
            for name, value in kwargs.items():
                operands += (name, _mark(value))
        except NoKey:
            return None
        if not any(type(mark) is Look or type(mark) is tuple for mark in operands):
            return None
        return (op, target, self._state, *operands)

    def find(self, key: Hashable) -> Kept | None:
        """What is kept under a key."""
        try:
            return _kept.get(key)
        except TypeError:  # a constant that cannot be hashed
            return None

    def keep(self, key: Hashable, call: Call, result: Any) -> None:
        """Note what an operation gave, if it is of a kind that can be made again."""
        tensors = result if isinstance(result, list | tuple) else (result,)
        operands = _tensors([*call.args, *call.kwargs.values()])
        storages = {_storage(fake) for fake in operands if type(fake) is FakeTensor}
        views = [type(t) is FakeTensor and _storage(t) in storages for t in tensors]
        if self._views and any(views):  # perhaps of one that is yet to be made
            self._views.append(View(call, torch.is_grad_enabled(), result))
        if key is None or not tensors or not all(_can_be_made(t, operands) for t in tensors):
            return
        looks = tuple(_look(t, view=view) for t, view in zip(tensors, views, strict=True))
        lists = any(type(value) is ListValue for value in call.args)
        if lists and any(look.view for look in looks):
            return  # the list may change before the view is made again
        if len(_kept) >= MOST:
            _kept.clear()
        try:
            _kept[key] = Kept(looks, None if tensors[0] is result else type(result))
        except TypeError:
            return

    def make(self, kept: Kept, call: Call) -> Any:
        """The result anew, from what is kept."""
        source = None
        if any(look.requires_grad for look in kept.looks):
            operands = _tensors([*call.args, *call.kwargs.values()])
            source = next(fake for fake in operands if fake.requires_grad)
        fakes = [self._tensor(look, source) for look in kept.looks]
        result = fakes[0] if kept.container is None else kept.container(fakes)
        if any(look.view for look in kept.looks):
            self._views.append(View(call, torch.is_grad_enabled(), result))
        return result

    def _tensor(self, look: Look, source: torch.Tensor | None) -> torch.Tensor:
        shape, stride, dtype, device, requires_grad, _ = look
        made = FakeTensor(
            self.world.mode, _empty_strided(shape, stride, dtype=dtype, device="meta"), device
        )
        if requires_grad:
            _mirror_gradient(source, made)
        return made

    def settle(self, run: Callable[[Call], Any], replace: Callable[[Any, Any], None]) -> None:
        """Make the views so far again for real, so that they share their bases' storage.

        ``run`` runs a call on fakes, ``replace`` puts a fake in the place of another.
        """
        if not self._views:
            return
        views, self._views = self._views, []
        before = torch.is_grad_enabled()
        try:
            for view in views:
                torch._C._set_grad_enabled(view.recording)
                made = run(view.call)
                olds = view.result if isinstance(view.result, list | tuple) else (view.result,)
                news = made if isinstance(made, list | tuple) else (made,)
                for old, new in zip(olds, news, strict=True):
                    replace(old, new)
        finally:
            torch._C._set_grad_enabled(before)


def _state() -> Hashable:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch._C._functorch.maybe_current_level(),
        torch.get_default_dtype(),
        torch._C._len_torch_function_stack() and torch.get_default_device(),
        tuple((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")),
    )


def _storage(fake: torch.Tensor) -> int:
    cdata: int = fake.untyped_storage()._cdata
    return cdata


def _look(fake: torch.Tensor, *, view: bool = False) -> Look:
    return Look(fake.shape, fake.stride(), fake.dtype, fake.device, fake.requires_grad, view)


def look_at(value: TensorValue) -> Look:
    """The metadata of an operand; NoKey for the rare kinds that no memory is kept of."""
    fake = value.fake
    if type(fake) is not FakeTensor or fake.is_conj() or fake.is_neg() or fake.is_inference():
        raise NoKey
    if fake.constant is not None:
        raise NoKey
    return _look(fake)


def _mark(value: Value) -> Any:
    """What stands for an operand in a key: 1, 1.0 and True are three different operands."""
    kind = type(value)
    if kind is TensorValue:
        return look_at(value)  # type: ignore[arg-type]
    if kind is SymbolValue:
        raise NoKey
    if isinstance(value, Const):
        constant = value.value
        if type(constant) is slice:
            return repr(constant)
        return _Constant(type(constant), constant)
    if kind is TupleValue or kind is ListValue:
        return (kind, *[_mark(item) for item in value.items])  # type: ignore[attr-defined]
    if kind is SliceValue:
        return (kind, *[_mark(part) for part in value.parts])  # type: ignore[attr-defined]
    if kind is Known:
        return _Constant(kind, value.value)  # type: ignore[attr-defined]
    raise NoKey


class _Constant(NamedTuple):
    """A constant in a key, with its type."""

    kind: type
    value: Any


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    """The fakes among operands."""
    found: list[torch.Tensor] = []
    for value in values:
        if type(value) is TensorValue:
            found.append(value.fake)
        elif type(value) in (TupleValue, ListValue):
            found += _tensors(value.items)
    return found


def _can_be_made(tensor: Any, operands: list[torch.Tensor]) -> bool:
    if type(tensor) is not FakeTensor or any(tensor is operand for operand in operands):
        return False
    if tensor._has_symbolic_sizes_strides:
        return False  # of symbols of this capture
    if tensor.requires_grad and (tensor.is_leaf or not any(o.requires_grad for o in operands)):
        return False
    return not (
        tensor.is_conj() or tensor.is_neg() or tensor.is_inference() or tensor.constant is not None
    )

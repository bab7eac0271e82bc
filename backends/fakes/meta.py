"""What an operation gives, by torch's meta kernels alone, or by its real ones.

A fake tensor mode has each operation ask, in Python, whether it is one of the many that need care:
the first time takes some milliseconds.  The operations named here need none.  Their results follow
from shapes, strides and dtypes whatever the device, and are what eager gives on the CPU
(``tests/backends/test_meta.py`` compares all of them).

The meta kernels of many are Python as well: half a millisecond, where the real ones take some
microseconds.  So those of which only the equality of sizes matters run for real on small tensors,
2 x 3 in the place of 512 x 768, if all operands are contiguous (``Small``).

Of a few, neither kind of stand-in has eager's strides where an operand is not contiguous: they run
for real, on ones laid out like the operands.  For batch norm that is much faster as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from dynacap.backends.fakes import symbolic
from dynacap.backends.fakes.memo import Kept, Look, parts
from dynacap.backends.fakes.symbolic import Unfit

POINTWISE = frozenset(
    """abs add addcmul and and_ bfloat16 bitwise_and bitwise_not bitwise_or bitwise_xor bool ceil
    clamp clamp_max clamp_min cos div double elu eq erf exp expm1 float floor ge gelu gt
    half hardsigmoid hardswish hardtanh int invert isinf isnan le leaky_relu lerp log
    log1p logical_not long lt masked_fill maximum minimum mish mod mul ne neg or or_ pow
    reciprocal relu relu6 remainder round rsqrt selu sigmoid sign silu sin softplus sqrt
    square sub tanh truediv where xor""".split()
)
VIEWS = frozenset(
    """T chunk expand expand_as flatten getitem mT movedim narrow permute reshape select split
    squeeze swapaxes t transpose unbind unflatten unsqueeze view view_as""".split()
)
OTHERS = frozenset(
    """addmm amax amin argmax baddbmm bmm cat cumsum embedding layer_norm linear log_softmax matmul
    mean mm softmax stack sum var""".split()
)
FOR_REAL = frozenset("batch_norm floor_divide floordiv logical_and logical_or logical_xor".split())
# Whose sizes are sizes of operands, or 1, so that others can stand for these.
SMALL = POINTWISE | set("addmm cumsum layer_norm linear mean var".split())
# Of which the meta kernels take what others refuse: dtypes, and dimensions.
CHECKED = SMALL | {"softmax", "log_softmax"}
_SIZES_AT = {"layer_norm": 1}  # the position of an argument that is sizes, and no tensor
MOST = 2**22  # elements of a tensor that is made for that
KNOWN = POINTWISE | VIEWS | OTHERS

_empty_strided = torch.empty_strided
_CPU = torch.device("cpu")
_BASIC = (int, slice, type(None), type(Ellipsis))  # of an index that gives a view


def predicted(target: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Kept | None:
    """What a call of a torch function gives; None if that is for the fake mode to say."""
    name = _name(target)
    real = name in FOR_REAL or (name == "pow" and _gives_another_dtype(args[0]))
    if not (real or name in KNOWN) or not is_plain_state():
        return None
    if name == "getitem" and not _is_basic(args[1]):
        return None
    if name == "where" and len(args) + len(kwargs) == 1:  # as many as are not 0
        return None
    if symbolic.has_symbols(args) or any(map(symbolic.has_symbols, kwargs.values())):
        return symbolic.foretold(predicted, name, target, args, kwargs)
    kept = _said_by(Small(_SIZES_AT.get(name)), target, args, kwargs) if name in SMALL else None
    if kept is not None:
        return kept
    if name in CHECKED and refusal(target, args, kwargs) is not None:
        return None
    return _said_by(_Twins(_ones if real else _meta), target, args, kwargs)


def _said_by(
    twins: _Twins, target: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Kept | None:
    try:
        args, kwargs = twins.operands(args), {key: twins.of(value) for key, value in kwargs.items()}
        result = target(*args, **kwargs)
        operands = list(twins.made.values())
        found = parts(result)
        if not found or not all(_is_new(tensor, operands) for tensor in found):
            return None
        storages = {twin.untyped_storage()._cdata for twin in operands}
        looks = tuple(twins.look(tensor, storages) for tensor in found)
    except Exception:  # the fake mode says what the program is told
        return None
    return Kept(looks, None if found[0] is result else type(result))


def is_checked(target: Callable[..., Any]) -> bool:
    """Whether a function is one whose meta kernel takes what others refuse."""
    return _name(target) in CHECKED


def refusal(target: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Exception | None:
    """What a function raises on small tensors like these; None: nothing, or there are no such."""
    twins = _OfAnyLayout(_SIZES_AT.get(_name(target)))
    try:
        args, kwargs = twins.operands(args), {key: twins.of(value) for key, value in kwargs.items()}
    except Exception:
        return None
    try:
        target(*args, **kwargs)
    except Exception as error:
        return error
    return None


def as_function(target: Callable[..., Any], args: Any) -> tuple[Callable[..., Any], Any]:
    """A call of a tensor's method as one of a function, which is given the tensor first."""
    owner = getattr(target, "__self__", None)
    if isinstance(owner, torch.Tensor):
        return getattr(torch.Tensor, target.__name__), (owner, *args)
    return target, args


def _name(target: Any) -> str:
    name: str = getattr(target, "__name__", "")
    return name.removeprefix("__").removesuffix("__")


def _gives_another_dtype(base: Any) -> bool:
    """Whether the meta kernel of ``pow`` has not eager's dtype."""
    return type(base) is not FakeTensor or base.dtype is torch.bool


def _is_basic(index: Any) -> bool:
    return isinstance(index, _BASIC) or (type(index) is tuple and all(map(_is_basic, index)))


def is_plain_state() -> bool:
    """Whether nothing of torch's state treats devices apart, or turns tensors into others."""
    return not (
        torch.is_inference_mode_enabled()
        or torch._C._functorch.maybe_current_level() is not None
        or torch._C._len_torch_function_stack()
        or torch.is_autocast_enabled("cpu")
    )


class _Twins:
    """Tensors in the place of fakes, the same for the same one."""

    def __init__(self, make: Callable[[FakeTensor], torch.Tensor]) -> None:
        self.make = make
        self.made: dict[int, torch.Tensor] = {}

    def operands(self, args: Any) -> Any:
        """What takes the place of all positional operands."""
        return self.of(args)

    def of(self, value: Any) -> Any:
        """An operand with twins for the fakes that it is or holds."""
        kind = type(value)
        if kind is FakeTensor:
            if id(value) not in self.made:
                self.made[id(value)] = self._twin(value)
            return self.made[id(value)]
        if kind is list or kind is tuple:
            return kind(map(self.of, value))
        if isinstance(value, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool):
            raise Unfit
        return value

    def _twin(self, fake: FakeTensor) -> torch.Tensor:
        if fake.device != _CPU or fake._has_symbolic_sizes_strides:
            raise Unfit
        made = self.make(fake)
        return made.requires_grad_() if fake.requires_grad else made

    def look(self, tensor: torch.Tensor, storages: set[int]) -> Look:
        """What a result would look like if these were the operands themselves."""
        view = tensor.untyped_storage()._cdata in storages
        return Look(tensor.shape, tensor.stride(), tensor.dtype, _CPU, tensor.requires_grad, view)


class Small(_Twins):
    """Real tensors with other sizes: the same for the same, 0 and 1 for themselves."""

    def __init__(self, sizes_at: int | None = None) -> None:
        super().__init__(self._ones)
        self._sizes = {0: 0, 1: 1}
        self._sizes_at = sizes_at

    def operands(self, args: Any) -> Any:
        """The same, with sizes among them exchanged."""
        made = list(self.of(args))
        at = self._sizes_at
        if at is not None:
            made[at] = [self._sizes[size] for size in args[at]]
        return made

    def _ones(self, fake: FakeTensor) -> torch.Tensor:
        if fake.stride() != _contiguous(fake.shape):
            raise Unfit
        sizes = self._sizes
        return torch.ones([sizes.setdefault(n, len(sizes)) for n in fake.shape], dtype=fake.dtype)

    def look(self, tensor: torch.Tensor, storages: set[int]) -> Look:
        """The same, with the sizes exchanged back."""
        small = super().look(tensor, storages)
        if small.view or small.stride != _contiguous(small.shape):
            raise Unfit
        given = {small: size for size, small in self._sizes.items()}
        shape = torch.Size(given[n] for n in small.shape)
        return small._replace(shape=shape, stride=_contiguous(shape))


class _OfAnyLayout(Small):
    """Small tensors for fakes of any strides, and of sizes that vary: what is made of them tells
    nothing but whether it can be made."""

    def _twin(self, fake: FakeTensor) -> torch.Tensor:
        if fake.device != _CPU:
            raise Unfit
        return self._ones(fake)

    def _ones(self, fake: FakeTensor) -> torch.Tensor:
        shape: list[Any] = list(fake.shape)
        now = [n if type(n) is int else n.node.hint for n in shape]
        if None in now:
            raise Unfit
        sizes = self._sizes
        return torch.ones([sizes.setdefault(n, len(sizes)) for n in now], dtype=fake.dtype)


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _meta(fake: FakeTensor) -> torch.Tensor:
    return _empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device="meta")


def _ones(fake: FakeTensor) -> torch.Tensor:
    storage = 1 + sum((n - 1) * step for n, step in zip(fake.shape, fake.stride(), strict=True))
    if fake.numel() == 0 or storage > MOST:
        raise Unfit
    return torch.ones(storage, dtype=fake.dtype).as_strided(fake.shape, fake.stride())


def _is_new(tensor: Any, operands: list[torch.Tensor]) -> bool:
    return (
        type(tensor) is torch.Tensor
        and not any(tensor is operand for operand in operands)
        and not (tensor.requires_grad and tensor.is_leaf)
        and not (tensor.is_conj() or tensor.is_neg())
    )

"""Objects with a ``__torch_function__``, subclasses of tensors among them: asked as eager asks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap
from tests.tensor.rows import Row, Table

row = Table()


def line(n: int = 6) -> Tensor:
    return torch.arange(float(n)) + 1


def square() -> Tensor:
    return torch.arange(12.0).reshape(3, 4) / 7 - 0.5


class Plain(Tensor):
    """Adds nothing."""


class Deeper(Plain):
    """A subclass of a subclass."""


class Other(Tensor):
    """Is no relative of the others."""


class Noting(Tensor):
    """Notes with what it is asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asked.append((func.__name__, [kind.__name__ for kind in types], len(args), kwargs))
        return super().__torch_function__(func, types, args, kwargs or {})


class Carrying(Tensor):
    """Hands the names of its operands on."""

    names: list[str]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Carrying):
            result.names = [name for arg in args for name in getattr(arg, "names", [])]
        return result


class Unwrapping(Tensor):
    """Computes by itself, and gives plain tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.add or func == Tensor.add:
                return torch.sub(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))


class Handled(Tensor):
    """Looks into a table first."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = TABLE.get(func)
        if found is not None:
            return found(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


TABLE = {
    torch.sin: lambda x: "sine",
    Tensor.add: lambda x, y: "sum",
    Tensor.shape.__get__: lambda x: "shape",
    F.relu: lambda x, inplace: "relu",
}


class Refusing(Tensor):
    """Knows ``exp`` only, and raises for ``log``."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.log:
            raise ValueError("no logarithms")
        if func is not torch.exp:
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs or {})


asked: list[Any] = []
HANDLED: dict[Any, Callable[..., Any]] = {}


class Diagonal:
    """No tensor at all."""

    def __init__(self, n: int, value: Any) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in HANDLED or not all(issubclass(t, (Tensor, Diagonal)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def implements(func: Any) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        HANDLED[func] = function
        return function

    return register


@implements(torch.mean)
def mean(x: Any) -> Any:
    return x.value / x.n


@implements(torch.add)
def add(x: Any, y: Any, alpha: float = 1.0) -> Any:
    if isinstance(x, Diagonal) and isinstance(y, Diagonal):
        return Diagonal(x.n, x.value + alpha * y.value)
    full = [v.value * torch.eye(v.n) if isinstance(v, Diagonal) else v for v in (x, y)]
    return torch.add(*full, alpha=alpha)


@implements(F.relu)
def relu(x: Any, inplace: bool = False) -> Any:
    return Diagonal(x.n, F.relu(x.value))


def of(kind: type, make: Callable[[], Tensor] = line) -> Any:
    return make().as_subclass(kind)


def carrying(name: str, make: Callable[[], Tensor] = line) -> Any:
    made = of(Carrying, make)
    made.names = [name]
    return made


NOBODY = "tensor-subclass", "no tensor operations"
EACH = (Tensor, Plain, Deeper, Noting, Unwrapping, Handled)


def each(make: Callable[[], Tensor] = square) -> Callable[[], list[tuple[Any, ...]]]:
    return lambda: [(of(kind, make),) for kind in EACH]


# -- what eager asks, and what comes of it --------------------------------------------------------
@row(each())
def operators(x: Any) -> Any:
    y = [x * 2 + 1, 1 - x, 2 / x, -x, abs(x), x**2, 2**x, x // 2, x % 3, x @ x.T, ~(x > 0)]
    return y, [x < 1, x == x, x != 0, 1 >= x], [type(each).__name__ for each in y]


@row(each())
def functions(x: Any) -> Any:
    parts = torch.stack([x, x * 2]), torch.cat((x, x)), torch.where(x > 0, x, 0.0)
    return parts, torch.max(x, dim=1), x.split(2, 1), torch.einsum("ij,kj->ik", x, x)


@row(each())
def functional(x: Any) -> Any:
    y = F.softmax(x, -1) + F.relu(x) + F.dropout(x, 0.5, training=False)
    return F.layer_norm(y, (4,)), F.linear(y, x), F.mse_loss(y, x), F.gelu(y)


@row(each())
def fields(x: Any) -> Any:
    sizes = x.shape, x.size(0), len(x), x.ndim, x.numel(), x.stride(), x.is_floating_point()
    return sizes, x.dtype, x.device, x.T, x.mT, x.requires_grad, x.is_leaf, x.grad, x.layout


@row(each())
def items(x: Any) -> Any:
    return x[0], x[:, 1:], x[..., None], [part + 1 for part in x], x[[0, 2]]


@row(lambda: [(of(kind, square),) for kind in EACH if kind is not Noting])
def changed(x: Any) -> Any:
    y = x.add_(1)
    x[0] = 7.0
    x[1:] *= 2
    x += 1
    return y is x, type(y).__name__, x.clone()


@row(each())
def questions(x: Any) -> Any:
    kinds = isinstance(x, Plain), issubclass(type(x), Tensor), torch.is_tensor(x)
    has = torch.overrides.has_torch_function((x,)), torch.overrides.is_tensor_like(x)
    return kinds, has, type(x).__name__, f"{type(x)}", x * 1


@row(lambda: [(of(a), of(b)) for a in EACH for b in (Tensor, Plain, Deeper)])
def mixed(x: Any, y: Any) -> Any:
    found = x + y, torch.mul(x, y), torch.stack([y, x]), y.maximum(x)
    return found, [type(each).__name__ for each in found]


@row(lambda: [(of(Noting), of(Plain), asked), (of(Plain), of(Noting), asked)], *NOBODY)
def unrelated(x: Any, y: Any, noted: list[Any]) -> Any:
    noted.clear()
    try:
        return x + y, noted
    except TypeError:
        return "no one knows", noted


@row(lambda: [(of(Noting, square), line(4), asked)])
def noted(x: Any, y: Any, noted: list[Any]) -> Any:
    noted.clear()
    x + y, torch.add(x, y, alpha=2), 1 - x, x.sum(dim=1, keepdim=True), x.shape, x[0], x.T
    F.relu(x, inplace=False), torch.stack([y, x[0]]), x.requires_grad, x == x, x.as_subclass(Tensor)
    return noted


def overlapping(kind: type) -> Any:
    whole = of(kind, square)
    return whole, whole[1:]


@row(lambda: [overlapping(kind) for kind in (Plain, Noting, Tensor)])
def overlaps(x: Any, y: Any) -> Any:
    x.mul_(2)
    return y + 1, x


@row(lambda: [(of(Plain, square), square()), (square(), of(Plain, square))])
def written_to(x: Any, y: Any) -> Any:
    z = torch.empty(3, 4)
    found = torch.add(x, 1, out=y), torch.mul(x, 2, out=z)
    return found, z, found[0] is y, found[1] is z


@row(lambda: [(of(kind, square),) for kind in EACH if kind is not Handled])
def in_modes(x: Any) -> Any:
    with torch.no_grad():
        y = x * 2
    with torch.inference_mode():
        z = x + 1
    return y, z, z.is_inference(), torch.rand_like(x), F.dropout(x, 0.5)


@row(lambda: [(of(Noting, lambda: line(n)),) for n in (6, 7, 8, 9)])  # noqa: B023
def of_many_sizes(x: Any) -> Any:
    return x.shape[0] * 2, (x * x.size(0)).sum(), x.view(-1, 1).expand(-1, x.numel()), x + len(x)


@row(lambda: [(carrying("a"), carrying("b")), (carrying("c"), line())])
def attributes(x: Any, y: Any) -> Any:
    z = torch.sin(x + y) * y
    z.extra = z.names
    return z.names, z, x.names


@row(lambda: [(of(Unwrapping), line()), (line(), of(Unwrapping))])
def other_meaning(x: Any, y: Any) -> Any:
    return x + y, torch.add(x, y, alpha=2), (x * y).exp()


@row(lambda: [(of(Handled),), (line(),), (of(Handled),)])
def in_a_table(x: Any) -> Any:
    return torch.sin(x), x + 1, x.shape, F.relu(x), x.sin(), x.dtype, torch.add(x, 1)


@row(lambda: [(of(Refusing),), (line(),)])
def raising(x: Any) -> Any:
    try:
        return torch.exp(x), torch.log(x)
    except ValueError as error:
        return str(error)


@row(lambda: [(of(Refusing),), (line(),)], *NOBODY)
def nobody_knows(x: Any) -> Any:
    try:
        return torch.exp(x), torch.sin(x)
    except TypeError as error:
        return str(error)


class Adding(Plain):
    def __add__(self, other: Any) -> Any:  # type: ignore[override]
        return super().__add__(other) * 10

    def __radd__(self, other: Any) -> Any:
        return -self

    def sum(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return "sum", super().sum(*args, **kwargs)

    @property
    def twice(self) -> Any:
        return self * 2


@row(lambda: [(of(Adding), line()), (of(Adding), of(Adding)), (of(Plain), of(Adding))])
def own_methods(x: Any, y: Any) -> Any:
    twice = x.twice if isinstance(x, Adding) else None
    return x + y, y + x, 1 + x, x.sum(), twice, torch.sum(x)


# -- objects of subclasses ------------------------------------------------------------------------
class Named(Tensor):
    name_: str

    @staticmethod
    def __new__(cls, data: Any, name: str = "none") -> "Named":
        return torch.as_tensor(data, dtype=torch.float32).as_subclass(cls)

    def __init__(self, data: Any, name: str = "none") -> None:
        self.name_ = name


@row(lambda: [(line(),), (of(Plain),)])
def made_inside(x: Any) -> Any:
    plain = x.as_subclass(Tensor) * 2
    one = plain.as_subclass(Plain)
    two, three = Deeper(plain), Tensor._make_subclass(Other, plain)
    four = Named(plain, "four")
    one.tag = [1, plain]
    one.add_(1)
    return plain, one, two, three, four, four.name_, one.tag, plain + 1, one is two


@row(lambda: [(line(),), (of(Plain),)])
def shared(x: Any) -> Any:
    y = x.as_subclass(Other)
    y.mul_(3)
    return x, y, y.as_subclass(Tensor)[1:]


def leaf(kind: type, make: Callable[[], Tensor] = square) -> Any:
    return of(kind, make).requires_grad_()


@row(lambda: [(leaf(kind),) for kind in EACH if kind is not Handled])
def gradients(x: Any) -> Any:
    y = torch.sin(x) * x
    return y.sum() + (x.as_subclass(Tensor) ** 2).sum()


@row(lambda: [(leaf(kind),) for kind in EACH])
def gradients_through_changes(x: Any) -> Any:
    y = x * 2
    y.add_(x)
    y[0] = 0.0
    return y.sum(), y.detach(), y.requires_grad


@row(lambda: [(leaf(kind),) for kind in (Tensor, Plain, Noting)], "tensor-subclass")
def leaf_changed(x: Any) -> Any:
    with torch.no_grad():
        x.add_(1)
    return x * 2


# -- parameters and buffers -----------------------------------------------------------------------
class Weight(torch.nn.Parameter):
    """Does not ask to be asked."""


class Scaling(torch.nn.Parameter):
    """A parameter that is asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch._C._nn.linear else result


class Layers(torch.nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.linear.weight = kind(torch.eye(4) + 0.1)
        self.register_buffer("shift", of(Plain, lambda: line(4)))

    def forward(self, x: Tensor) -> Any:
        y = self.linear(x)
        self.shift += 1
        return y + self.shift, type(self.shift * 1).__name__, type(self.linear.weight).__name__


@row(lambda: [(Layers(kind), square()) for kind in (torch.nn.Parameter, Weight, Scaling)])
def in_modules(model: Any, x: Tensor) -> Any:
    return model(x)


# -- no tensors -----------------------------------------------------------------------------------
@row(lambda: [(Diagonal(3, line(1)),), (Diagonal(4, line(1) * 2),)])
def no_tensors(x: Any) -> Any:
    both = torch.add(x, x, alpha=2.0)
    return torch.mean(x), both.value, F.relu(both).n, torch.add(x, torch.ones(x.n, x.n))


@row(lambda: [(Diagonal(3, line(1)),), (line(),)], *NOBODY)
def no_tensors_refuse(x: Any) -> Any:
    try:
        return torch.sin(x)
    except TypeError as error:
        return str(error)


# -- blocks and breaks ----------------------------------------------------------------------------
@row(each())
def turned_off(x: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
        inside = torch._C._is_torch_function_enabled()
    return y, x + y, inside, torch._C._is_torch_function_enabled()


@row(each(), "explicit-break", "torch-mode", "no tensor operations")
def broken_while_off(x: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
        dynacap.graph_break()
        y = y + x
    return y, x + y


class Breaking(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dynacap.graph_break()
        return super().__torch_function__(func, types, args, kwargs or {})


@row(lambda: [(of(Breaking),), (line(),)], "explicit-break")
def broken_inside(x: Any) -> Any:
    y = x * 2
    return y + 1, torch.sin(y)


class Method(Tensor):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return "asked", func.__name__


@row(lambda: [(of(Method), of(Plain))], *NOBODY)
def plain_method(x: Any, y: Any) -> Any:
    return x + 1, y * 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("one", "backend"), row.params(), ids=lambda v: v.name if isinstance(v, Row) else v
)
def test_row(one: Row, backend: str) -> None:
    one.check(backend)


def test_one_graph_and_one_for_each_class() -> None:
    def f(x: Any) -> Any:
        return (x * 2 + 1).sin().sum()

    compiled = dynacap.compile(f, backend="eager", fullgraph=True)
    for kind in (Plain, Plain, Deeper, Plain, Tensor):
        assert type(compiled(of(kind))) is kind
    assert dynacap.counters()["graphs"] == 3

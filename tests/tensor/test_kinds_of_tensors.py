"""Tensors that are more than memory with sizes: subclasses, other layouts and devices, flags.

Each row begins or ends with plain tensors, so that an entry for one kind meets the others.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import dynacap
from dynacap.config import config
from dynacap.guards.choose import C_IMPORT_ERROR
from tests.tensor.rows import Row, Table

row = Table()
needs_c = pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="needs C")


def line(n: int = 6) -> Tensor:
    return torch.arange(float(n)) + 1


def square() -> Tensor:
    return torch.eye(3) * 2 + 1


# -- classes --------------------------------------------------------------------------------------
class Tagged(Tensor):
    """A subclass without behaviour of its own, but with attributes."""

    tag: str


class Logged(Tensor):
    """Notes each function that is called on it."""

    calls: list[str]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        logs = [arg.calls for arg in args if isinstance(arg, Logged) and "calls" in vars(arg)]
        result = super().__torch_function__(func, types, args, kwargs or {})
        for log in logs:
            log.append(getattr(func, "__name__", str(func)))
        return result


class Scaled(Tensor):
    """A wrapper: stands for a tensor times a number, and gives plain tensors."""

    inner: Tensor
    scale: float

    @staticmethod
    def __new__(cls, inner: Tensor, scale: float) -> "Scaled":
        made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner, made.scale = inner, scale
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        plain = [arg.inner * arg.scale if isinstance(arg, Scaled) else arg for arg in args]
        return func(*plain, **(kwargs or {}))


def tagged(x: Tensor, tag: str) -> Tagged:
    made = x.as_subclass(Tagged)
    made.tag = tag
    return made


def logged(x: Tensor) -> Logged:
    made = x.as_subclass(Logged)
    made.calls = []
    return made


class OwnParameter(torch.nn.Parameter):
    pass


def classes() -> list[tuple[Any]]:
    return [
        (line(),),
        (tagged(line(), "a"),),
        (torch.nn.Parameter(line()),),
        (torch.nn.Parameter(line(), requires_grad=False),),
        (torch.nn.Buffer(line()),),
        (OwnParameter(line()),),
        (logged(line()),),
        (line(),),
    ]


@row(classes)
def of_classes(x: Any) -> Any:
    return x * 2, type(x).__name__, isinstance(x, torch.nn.Parameter)


@row(lambda: [(line(), 1), (tagged(line(), "a"), 2), (tagged(line(), "b"), 3)])
def with_attributes(x: Any, n: int) -> Any:
    return x + n, getattr(x, "tag", "none")


@row(
    lambda: [(line(), logged(line())), (logged(line()), line()), (line(), line())],
)
def that_log(x: Any, y: Any) -> Any:
    return (x + y).sum(), torch.relu(y)


@row(lambda: [(line(),), (Scaled(line(), 3.0),), (Scaled(line(), 4.0),)], "tensor-subclass")
def that_wrap(x: Any) -> Any:
    return x + 1, torch.sin(x)


class Lazy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.LazyLinear(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * 2  # type: ignore[no-any-return]


def lazies() -> list[tuple[Any, Tensor]]:
    torch.manual_seed(0)
    made = Lazy()
    return [(made, square()), (made, square())]


@row(lazies, "tensor-subclass", "unsupported-field", "weak-reference")
def of_lazy_modules(model: Any, x: Tensor) -> Any:
    return model(x)


# -- devices and layouts --------------------------------------------------------------------------
@row(lambda: [(line(),), (line().to("meta"),), (line(),), (torch.zeros(3, device="meta"),)])
def on_meta(x: Tensor) -> Any:
    y = x * 2
    return y, y.device.type, y.shape, x.is_meta


@row(lambda: [(line(), line()), (line(), line().to("meta")), (line(), line())], "fake-tensor-error")
def on_two_devices(x: Tensor, y: Tensor) -> Any:
    return x + y


@row(lambda: [(line(), line()), (line().to("meta"), line().to("meta"))])
def changed_on_meta(x: Tensor, y: Tensor) -> Any:
    x.add_(y)
    return x * 2


@row(lambda: [(square(),), (square().to_sparse(),), (square(),)], "tensor-layout")
def coordinates(x: Tensor) -> Any:
    return x * 2, x.is_sparse


@row(lambda: [(square(), square()), (square().to_sparse(), square())], "tensor-layout")
def coordinates_times_dense(x: Tensor, y: Tensor) -> Any:
    return x @ y, torch.sparse.mm(x, y) if x.is_sparse else None


def uncoalesced() -> Tensor:
    at = torch.tensor([[0, 0, 1], [1, 1, 2]])
    return torch.sparse_coo_tensor(at, line(3), (3, 3))


@row(lambda: [(uncoalesced(),), (uncoalesced().coalesce(),)], "tensor-layout")
def coordinates_twice(x: Tensor) -> Any:
    return x.is_coalesced(), x.coalesce().values() * 2, x.to_dense()


@row(
    lambda: [(square(),), (square().to_sparse_csr(),), (square().to_sparse_csc(),)], "tensor-layout"
)
def compressed(x: Tensor) -> Any:
    return x @ torch.ones(3, 2), str(x.layout)


@row(lambda: [(square(),), (square(),)], "tensor-subclass", "tensor-layout")
def made_sparse(x: Tensor) -> Any:
    y = x.to_sparse()
    return (y * 2).to_dense(), x + 1


class Table_(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(4, 3, sparse=True)

    def forward(self, at: Tensor) -> Any:
        return self.table(at) * 2


@row(lambda: [(m, torch.tensor([1, 2])) for m in (Table_(), Table_())], backends=("eager",))
def sparse_gradients(model: Any, at: Tensor) -> Any:
    return model(at)


def quantised(scale: float = 0.1) -> Tensor:
    return torch.quantize_per_tensor(line(), scale, 2, torch.quint8)


@row(lambda: [(quantised(),), (quantised(0.2),), (line(),)], "tensor-layout")
def of_levels(x: Tensor) -> Any:
    return (x.dequantize() if x.is_quantized else x) + 1


def nested(layout: torch.layout) -> Tensor:
    return torch.nested.nested_tensor([line(2), line(3)], layout=layout)


@row(lambda: [(line(),), (nested(torch.strided),)], "tensor-layout")
def of_several(x: Tensor) -> Any:
    return x * 2, x.is_nested


@row(lambda: [(line(),), (nested(torch.jagged),)], "tensor-subclass", backends=("eager",))
def of_several_jagged(x: Tensor) -> Any:
    return (x * 2).sum()


@row(lambda: [(square(),), (square().to_mkldnn(),)], "tensor-layout")
def of_mkldnn(x: Tensor) -> Any:
    return x.to_dense() + 1 if x.layout is torch._mkldnn else x + 1


# -- bits and strides -----------------------------------------------------------------------------
def complex_line() -> Tensor:
    return torch.complex(line(4), line(4) * -2)


def conjugates() -> list[tuple[Tensor]]:
    return [
        (complex_line(),),
        (complex_line().conj(),),
        (complex_line()[::2].repeat(2).conj(),),
        (complex_line(),),
    ]


@row(lambda: [(z[:4].reshape(4),) for (z,) in conjugates()])
def conjugate(z: Tensor) -> Any:
    return z * 2, z.conj(), z.real, z.imag, z.is_conj(), torch.view_as_real(z.resolve_conj())


@row(lambda: [(complex_line(),), (complex_line().conj(),)])
def conjugate_changed(z: Tensor) -> Any:
    z.mul_(1j)
    z[0] = 3 - 1j
    return z * 1, z.is_conj()


def with_conjugates() -> list[tuple[Tensor, Tensor]]:
    z, w = complex_line(), complex_line()
    return [(complex_line(), complex_line()), (z, z.conj()), (w.conj(), w)]


@row(with_conjugates)
def with_its_conjugate(z: Tensor, w: Tensor) -> Any:
    z.add_(1j)
    return w * 2


@row(lambda: [(line(4),), (torch._neg_view(line(4)),), (complex_line().conj().imag,), (line(4),)])
def negative(x: Tensor) -> Any:
    return x * 2, x.is_neg(), -x, x.resolve_neg()


@row(lambda: [(line(4),), (torch._neg_view(line(4)),), (complex_line().conj().imag,), (line(4),)])
def negative_changed(x: Tensor) -> Any:
    x.add_(1)
    return x * 2


def expanded() -> list[tuple[Tensor]]:
    return [
        (line(4).reshape(2, 2),),
        (torch.ones(1, 2).expand(2, 2),),
        (torch.ones(()).expand(2, 2),),
        (line(3).as_strided((2, 2), (1, 1)),),
        (line(4).reshape(2, 2).t(),),
    ]


@row(expanded)
def with_no_strides(x: Tensor) -> Any:
    return x * 2, x.stride(), x.contiguous(), x.sum(0), x.is_contiguous()


@row(lambda: expanded()[:3] + expanded()[4:])
def with_no_strides_changed(x: Tensor) -> Any:
    y = x * 2
    x.add_(1)
    return y


@row(lambda: [(line(8)[4:],), (line(4),), (line(8)[2:6],)])
def from_the_middle(x: Tensor) -> Any:
    x[1:3] = x[2:4] * 2
    return x.view(2, 2)[1], x * 3


@row(lambda: [(line(8)[4:],), (line(4),), (line(8)[2:6],)])
def places_in_storage(x: Tensor) -> Any:
    return torch.as_strided(x, (2,), (1,)) * 2, torch.as_strided(x, (2,), (1,), 0) * 2


@row(lambda: [(line(),), (line().share_memory_(),)])
def in_shared_memory(x: Tensor) -> Any:
    x.add_(1)
    return x * 2


@row(lambda: [(line().half(),), (line().bfloat16(),), (line().to(torch.float8_e5m2),), (line(),)])
def small_numbers(x: Tensor) -> Any:
    return x.to(torch.float32) * 2, x.dtype


def tangents() -> list[tuple[Tensor, Any]]:
    return [(line(), None), (line(), line() * 10), (line(), None)]


@row(tangents, "function-transform", "torch-mode")
def with_tangents(x: Tensor, tangent: Any) -> Any:
    if tangent is None:
        return x * x
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(x, tangent) * x)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("checker", ["python", pytest.param("c", marks=needs_c)])
def test_captured_without_tangents(backend: str, checker: str) -> None:
    """What was captured where no forward-mode gradient is taken is not used where one is."""
    with config.patch(checker=checker):
        compiled = dynacap.compile(lambda x: (x * x + 1).sin(), backend=backend)
        for _ in range(4):
            compiled(line())
        with forward_ad.dual_level():
            found = forward_ad.unpack_dual(compiled(forward_ad.make_dual(line(), line() * 10)))
        wanted = line() * 20 * line() * (line() * line() + 1).cos()
        torch.testing.assert_close(found.tangent, wanted)
        torch.testing.assert_close(compiled(line()), (line() * line() + 1).sin())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("one", "backend"), row.params(), ids=lambda v: v.name if isinstance(v, Row) else v
)
def test_row(one: Row, backend: str) -> None:
    one.check(backend)

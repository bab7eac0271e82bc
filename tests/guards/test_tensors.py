"""Tensor guards: every fact of a tensor is checked, in every way in which it can be changed."""

import collections
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dynacap.config import config
from dynacap.guards import (
    Checker,
    DictItem,
    GuardSet,
    InstanceDict,
    Local,
    NoOverlap,
    Overlap,
    ProcessState,
    Sizes,
    Tensor,
    make_checker,
    tensor_lowering,
)
from dynacap.guards.choose import C_IMPORT_ERROR
from dynacap.guards.ref import Ref
from dynacap.guards.tensor import overlap_pattern, tensor_facts

X, Y, Z = Local(0, "x"), Local(1, "y"), Local(2, "z")


class Child(torch.Tensor):
    pass


class Loud(torch.Tensor):
    """Objects to being looked at."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError("__torch_function__ ran")


def base() -> torch.Tensor:
    return torch.zeros(2, 3)


VARIANTS: dict[str, Callable[[], Any]] = {
    "plain": base,
    "other shape": lambda: torch.zeros(2, 4),
    "swapped shape": lambda: torch.zeros(3, 2),
    "more dims": lambda: torch.zeros(2, 3, 1),
    "fewer dims": lambda: torch.zeros(6),
    "no dims": lambda: torch.tensor(1.0),
    "empty": lambda: torch.zeros(0, 3),
    "other stride": lambda: torch.zeros(3, 2).t(),
    "wide stride": lambda: torch.zeros(2, 6)[:, :3],
    "expanded": lambda: torch.zeros(1, 3).expand(2, 3),
    "double": lambda: torch.zeros(2, 3, dtype=torch.float64),
    "half": lambda: torch.zeros(2, 3, dtype=torch.float16),
    "bfloat": lambda: torch.zeros(2, 3, dtype=torch.bfloat16),
    "int": lambda: torch.zeros(2, 3, dtype=torch.int64),
    "int32": lambda: torch.zeros(2, 3, dtype=torch.int32),
    "int8": lambda: torch.zeros(2, 3, dtype=torch.int8),
    "uint8": lambda: torch.zeros(2, 3, dtype=torch.uint8),
    "int1": lambda: torch.empty(2, 3, dtype=vars(torch)["int1"]),
    "bool": lambda: torch.zeros(2, 3, dtype=torch.bool),
    "float8": lambda: torch.zeros(2, 3, dtype=torch.float8_e4m3fn),
    "float8 of another kind": lambda: torch.zeros(2, 3, dtype=torch.float8_e5m2),
    "requires grad": lambda: torch.zeros(2, 3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(base()),
    "frozen parameter": lambda: torch.nn.Parameter(base(), requires_grad=False),
    "child": lambda: base().as_subclass(Child),
    "loud": lambda: base().as_subclass(Loud),
    "meta": lambda: torch.zeros(2, 3, device="meta"),
    "sparse": lambda: torch.zeros(2, 3).to_sparse(),
    "csr": lambda: torch.zeros(2, 3).to_sparse_csr(),
    "complex": lambda: torch.zeros(2, 3, dtype=torch.complex64),
    "conjugate": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj(),
    "real view": lambda: torch.zeros(2, 3, dtype=torch.complex64).real,
    "negative": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj().imag,
    "negative and dense": lambda: torch._neg_view(base()),
    "in inference": lambda: _in_inference(),
    "nested": lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    "fake": lambda: _fake(),
    "none": lambda: None,
    "list": lambda: [[0.0] * 3] * 2,
}
SAME_FACTS = {("plain", "in inference"), ("in inference", "plain")}
UNTELLABLE = ("nested", "none", "list")


def _in_inference() -> torch.Tensor:
    with torch.inference_mode():
        return base()


def _fake() -> Any:
    with torch._subclasses.FakeTensorMode():
        return base()


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", ["with probe", "without probe", "python"])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in UNTELLABLE])
def test_every_variant_is_told_from_every_other(
    make_checker: Callable[..., Checker], name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards = GuardSet([Tensor.of(X, VARIANTS[name]())])
    if way == "without probe":
        monkeypatch.setattr(tensor_lowering, "make_probe", lambda: None)
    if way != "python":  # without a guard on the state, the C checker has Python ask
        guards.add(ProcessState.current())
    checker = make_checker(guards, [X])
    for other, make in VARIANTS.items():
        value = make()
        expected = other == name or (name, other) in SAME_FACTS
        for _ in range(3):
            found = checker.check((value,))
            assert (found is not None) == expected, (other, checker.explain((value,)))
        mine = VARIANTS[name]()
        assert checker.check((mine,)) == (mine,) or other == "nested"
        assert (checker.explain((value,)) is None) == expected


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("data", lambda p: setattr(p, "data", torch.zeros(5))),
        ("set", lambda p: p.set_(torch.zeros(7))),
        ("freeze", lambda p: p.requires_grad_(False)),
        ("transpose", lambda p: p.t_()),
        ("dtype", lambda p: setattr(p, "data", p.data.double())),
        ("negate", lambda p: setattr(p, "data", torch._neg_view(p.data))),
        ("class", lambda p: setattr(p, "__class__", type("Odd", (torch.nn.Parameter,), {}))),
    ],
)
def test_changes_in_place(
    make_checker: Callable[..., Checker], name: str, change: Callable[[Any], object]
) -> None:
    for with_state in (True, False):
        module = torch.nn.Linear(3, 2)
        weight = DictItem(DictItem(InstanceDict(X), "_parameters"), "weight")
        guards = GuardSet([Tensor.of(weight, module.weight)])
        if with_state:
            guards.add(ProcessState.current())
        checker = make_checker(guards, [weight])
        for _ in range(4):
            found = checker.check((module,))
            assert found is not None
            assert found[0] is module.weight
        with torch.no_grad():
            change(module.weight)
        for _ in range(3):
            assert checker.check((module,)) is None
        assert "x.weight" in str(checker.explain((module,)))


def test_any_size(make_checker: Callable[..., Checker]) -> None:
    facts = tensor_facts(torch.zeros(4, 3))
    assert facts is not None
    guard = Tensor(
        X,
        Ref(torch.Tensor),
        *facts._replace(shape=(None, 3), is_inference=None),  # type: ignore[arg-type]
    )
    for with_state in (True, False):
        guards = GuardSet([guard, *([ProcessState.current()] if with_state else [])])
        checker = make_checker(guards)
        for size in (4, 1, 0, 1000):
            assert checker.check((torch.zeros(size, 3),)) == ()
        assert checker.check((torch.zeros(4, 2),)) is None
        assert checker.check((torch.zeros(3, 4).t(),)) is None


def test_inference_tensors_are_told_apart_if_asked(make_checker: Callable[..., Checker]) -> None:
    facts = tensor_facts(base())
    assert facts is not None
    checker = make_checker(GuardSet([Tensor(X, Ref(torch.Tensor), *facts)]))
    for _ in range(3):
        assert checker.check((base(),)) == ()
        assert checker.check((_in_inference(),)) is None


def test_one_tensor_in_two_places(make_checker: Callable[..., Checker]) -> None:
    """Without a guard that forbids it, one tensor may stand for two that look alike."""
    guards = GuardSet([Tensor.of(X, base()), Tensor.of(Y, base()), ProcessState.current()])
    checker = make_checker(guards)
    one = base()
    for _ in range(30):
        assert checker.check((base(), base())) == ()
        assert checker.check((one, one)) == ()
        assert checker.check((one, torch.zeros(3))) is None


def test_many_tensors(make_checker: Callable[..., Checker]) -> None:
    values = [torch.zeros(i + 1, 2) for i in range(50)]
    sources = [Local(i, f"x{i}") for i in range(50)]
    guards = GuardSet(Tensor.of(s, v) for s, v in zip(sources, values, strict=True))
    guards.add(ProcessState.current())
    checker = make_checker(guards, sources)
    for i in range(50):
        found = checker.check(tuple(values))
        assert found is not None
        assert all(a is b for a, b in zip(found, values, strict=True))
        wrong = [*values[:i], torch.zeros(i + 1, 3), *values[i + 1 :]]
        assert checker.check(tuple(wrong)) is None


def test_counts_are_left_alone(make_checker: Callable[..., Checker]) -> None:
    value = base()
    guards = GuardSet([Tensor.of(X, value), ProcessState.current()])
    checker = make_checker(guards, [X])
    before = sys.getrefcount(value)
    for other in (value, VARIANTS["sparse"](), VARIANTS["child"](), 3):
        for _ in range(20):
            checker.check((other,))
    assert sys.getrefcount(value) == before


def test_overlap(make_checker: Callable[..., Checker]) -> None:
    storage = torch.zeros(10)
    apart = make_checker(GuardSet([NoOverlap((X, Y))]))
    for _ in range(3):
        assert apart.check((storage[:5], storage[5:])) == ()
        assert apart.check((storage[:6], storage[5:])) is None
        assert apart.check((storage, storage)) is None
        assert apart.check((storage, torch.zeros(10))) == ()
        assert apart.check((storage[2:2], storage)) == ()
        assert apart.check((storage[::2], storage[1::2])) is None
        assert apart.check((storage, 3)) is None
        assert apart.check((storage, storage.to_sparse())) is None
        assert apart.check((storage, torch.zeros(10, device="meta"))) == ()
        assert apart.check((storage[:6].as_subclass(Loud), storage[5:])) is None
        assert apart.check((torch.nn.Parameter(storage), storage[3:])) is None


def test_overlap_of_many(make_checker: Callable[..., Checker]) -> None:
    storage = torch.zeros(120)
    parts = [storage[i * 10 : i * 10 + 10] for i in range(12)]
    sources = tuple(Local(i, f"x{i}") for i in range(12))
    checker = make_checker(GuardSet([NoOverlap(sources)]))
    assert checker.check(tuple(reversed(parts))) == ()
    parts[3] = storage[75:76]
    assert checker.check(tuple(parts)) is None


def test_overlap_pattern(make_checker: Callable[..., Checker]) -> None:
    storage = torch.zeros(10)
    values = (storage, storage[2:], torch.zeros(3))
    pattern = overlap_pattern(values)
    assert pattern == ((0, 1, 8),)
    checker = make_checker(GuardSet([Overlap((X, Y, Z), pattern)]))
    assert checker.check(values) == ()
    assert checker.check((storage, storage[3:], torch.zeros(3))) is None
    assert checker.check((storage, storage[2:], storage[9:])) is None
    assert checker.check((storage, torch.zeros(8), torch.zeros(3))) is None
    assert "x and y (8 bytes apart)" in str(Overlap((X, Y, Z), pattern))


def test_sizes(make_checker: Callable[..., Checker]) -> None:
    conditions = (
        ("v0.shape[0] >= 2", "x.shape[0] >= 2"),
        ("v0.shape[0] == v1 * 2", "x is twice y"),
    )
    guard = Sizes((X, Y), conditions)
    checker = make_checker(GuardSet([guard]))
    assert checker.check((torch.zeros(6), 3)) == ()
    assert checker.check((torch.zeros(6), 4)) is None
    assert checker.check((torch.zeros(()), 4)) is None
    assert checker.check((None, 4)) is None
    assert str(guard) == "x, y fulfil x.shape[0] >= 2 and x is twice y"
    assert guard.finding(torch.zeros(1), 3) == (
        "not x.shape[0] >= 2, not x is twice y (shape (1,), 3)"
    )


def test_subclass_code_does_not_run(make_checker: Callable[..., Checker]) -> None:
    loud = base().as_subclass(Loud)
    checker = make_checker(GuardSet([Tensor.of(X, loud), ProcessState.current()]))
    for _ in range(3):
        assert checker.check((loud,)) == ()
        assert checker.check((torch.zeros(9).as_subclass(Loud),)) is None
    assert checker.explain((torch.zeros(9).as_subclass(Loud),)) is not None


def test_description() -> None:
    guard = Tensor.of(X, torch.nn.Parameter(base()))
    assert str(guard) == (
        "x is a torch.nn.parameter.Parameter of torch.float32 on cpu, "
        "shape (2, 3), stride (3, 1), requires_grad"
    )
    assert guard.finding(torch.nn.Parameter(torch.zeros(2, 4))) == "shape (2, 4)"
    assert guard.finding(torch.zeros(2, 3)) == "a torch.Tensor"
    assert guard.finding(3) == "3"
    with pytest.raises(TypeError, match="no metadata"):
        Tensor.of(X, collections.deque())


@pytest.mark.cc
@pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="the C checker is not built")
def test_the_fast_ways_are_taken() -> None:
    """Tensors' metadata is found, and a probe is made after the first check that passes."""
    layout = importlib.import_module("dynacap.guards.tensor_layout")
    assert layout.find_layout(torch) == (True, True, True)
    with config.patch(checker="c"):
        checker: Any = make_checker(GuardSet([ProcessState.current(), Tensor.of(X, base())]))
    assert checker.check((torch.zeros(3),)) is None
    assert not checker.has_probe
    for _ in range(20):
        assert checker.check((base(),)) == ()
        with torch.no_grad():
            assert checker.check((base(),)) is None
        with torch.inference_mode():
            assert checker.check((base(),)) is None
    assert checker.has_probe


@pytest.fixture
def _layout_not_found() -> Iterator[None]:
    """The C checker does not know where tensors keep their metadata."""
    layout = importlib.import_module("dynacap.guards.tensor_layout")
    x = base()
    wrong = (x, 1, 2, (), (), 0, 1, 0)
    assert layout._fastcheck.find_tensor_layout((wrong, wrong), 1, 2, (x, x, x)) == (layout.NOTHING)
    yield
    assert layout.find_layout(torch)[0]


@pytest.mark.cc
@pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="the C checker is not built")
@pytest.mark.usefixtures("_layout_not_found")
@pytest.mark.parametrize("name", ["plain", "complex", "conjugate", "negative"])
def test_bits_are_asked_for_where_they_cannot_be_read(name: str) -> None:
    value = VARIANTS[name]()
    with config.patch(checker="c"):
        checker = make_checker(GuardSet([ProcessState.current(), Tensor.of(X, value)]))
    for other in ("plain", "complex", "conjugate", "negative", "negative and dense"):
        assert (checker.check((VARIANTS[other](),)) is not None) == (other == name)

"""Programs that restate public bug reports against compilers like this one: state between calls.

Each names the report that it restates. Eager Python says what is right.
"""

import functools
import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from dynacap.testing import Scenario, call, scenario

running_total = 0


class Dial:
    """Settings kept on a class."""

    level = 1.5
    labels: tuple[str, ...] = ("one",)


class Toggle:
    """Two marker objects, and a reference that goes from one to the other."""

    def __init__(self) -> None:
        self.on, self.off = object(), object()
        self.state = self.on
        self.flips = 0


class Owned:
    """Something that a weak reference can point at."""

    def __init__(self, weight: int) -> None:
        self.weight = weight


class Affine:
    """A method whose code is exchanged by the test."""

    def __init__(self, offset: float) -> None:
        self.offset = offset

    def run(self, t: Tensor) -> Tensor:
        return t + self.offset


def negate_and_square(self: Affine, t: Tensor) -> Tensor:
    return -(t * t) * self.offset


def stretch(t: Tensor, factor: float = 3.0) -> Tensor:
    return t * factor


@scenario(breaks=None)
def test_class_attribute_changed_176851() -> Scenario:
    """Class attributes are read anew on each call."""
    levels = [1.5, 4.0, 1.5, 1.5]
    labels: list[tuple[str, ...]] = [("one",), ("one",), ("one", "two"), ()]

    def before(index: int) -> None:
        Dial.level, Dial.labels = levels[index], labels[index]

    def function(x: Tensor) -> Tensor:
        return x.sin() * Dial.level - len(Dial.labels)

    return Scenario(function, [call(torch.ones(4)) for _ in levels], before=before)


@scenario(breaks=None)
def test_defaults_rebound_178365() -> Scenario:
    """Defaults of functions are part of what a graph depends on."""

    def adder(amount: float) -> Any:
        def add(t: Tensor, amount: float = amount) -> Tensor:
            return t + amount

        return add

    adders = [adder(amount) for amount in (0.5, 20.0, 300.0)]

    def before(index: int) -> None:
        stretch.__defaults__ = (3.0,) if index != 4 else (-1.0,)

    def function(x: Tensor, add: Any) -> Tensor:
        return add(stretch(x)).sum()

    order = (0, 1, 2, 0, 0)
    return Scenario(function, [call(torch.ones(3), adders[i]) for i in order], before=before)


@scenario(breaks=None)
def test_code_of_method_exchanged_197860() -> Scenario:
    """A method whose `__code__` was exchanged runs its new body."""
    original = Affine.run.__code__
    affine = Affine(2.0)

    def before(index: int) -> None:
        Affine.run.__code__ = negate_and_square.__code__ if index in (1, 2) else original

    def function(x: Tensor) -> Tensor:
        return affine.run(x).mean()

    return Scenario(function, [call(torch.arange(4.0)) for _ in range(4)], before=before)


@scenario(breaks=None)
def test_cached_function_keeps_its_cache_152994() -> Scenario:
    """`lru_cache` and `cache` run the body once for each argument, also when compiled."""
    bodies: list[Any] = []

    @functools.lru_cache(maxsize=None)  # noqa: UP033
    def weight(n: int) -> int:
        bodies.append(("weight", n))
        return 10 * n + len(bodies)

    @functools.cache
    def label(kind: str) -> str:
        bodies.append(("label", kind))
        return kind.upper()

    def function(x: Tensor, n: int) -> Any:
        return x - weight(n), label("k" * n)

    def after(index: int, result: Any) -> Any:
        return list(bodies), weight.cache_info().hits, label.cache_info().currsize

    return Scenario(function, [call(torch.ones(2), n) for n in (2, 2, 5, 2)], after=after)


@scenario(breaks=None)
def test_weak_reference_dies_147597() -> Scenario:
    """A weak reference is empty once the only owner has been deleted."""

    def function(x: Tensor) -> Any:
        owner = Owned(4)
        pointer = weakref.ref(owner)
        alive = pointer()
        y = x + (alive.weight if alive is not None else 0)
        del alive
        was_alive = pointer() is not None
        del owner
        return y * (2 if pointer() is None else 3), was_alive, pointer() is None

    return Scenario(function, [call(torch.ones(3))] * 2)


@scenario(breaks=None)
def test_hooks_added_later_117265() -> Scenario:
    """Hooks that come and go between calls take effect, the global ones too."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 2))
    handles: dict[str, Any] = {}

    def before(index: int) -> None:
        if index == 1:
            handles["double"] = model[1].register_forward_hook(lambda m, inputs, out: out * 2)
        if index == 2:
            handles["pre"] = model[2].register_forward_pre_hook(lambda m, inputs: (inputs[0] - 1,))
        if index == 3:
            handles.pop("double").remove()
        if index == 4:
            handles["all"] = register_module_forward_hook(lambda m, inputs, out: out + 0.25)

    def after(index: int, result: Any) -> None:
        if index == 4:
            handles.pop("all").remove()

    def function(x: Tensor) -> Tensor:
        return model(x) * 3

    return Scenario(function, [call(torch.ones(1, 2))] * 6, before=before, after=after)


@scenario(breaks=None)
def test_identity_decides_196173() -> Scenario:
    """A branch on `is` looks again when the attribute was bound to another object."""
    toggle = Toggle()

    def function(x: Tensor, toggle: Toggle) -> Tensor:
        toggle.flips += 1
        if toggle.state is toggle.on:
            toggle.state = toggle.off
            return x * 2
        toggle.state = toggle.on
        return x / 2

    return Scenario(function, [call(torch.ones(3), toggle)] * 6)


@scenario(breaks=None)
def test_counters_in_closure_and_global_146598() -> Scenario:
    """Counters in a closure and in a global move on with every call."""
    step = 0

    def advance(by: int) -> int:
        nonlocal step
        step += by
        return step

    def function(x: Tensor) -> Tensor:
        global running_total
        now = advance(3)
        print("step", now)
        running_total -= now
        return x + now

    def before(index: int) -> None:
        global running_total
        if index == 0:
            running_total = 0

    def after(index: int, result: Any) -> int:
        return running_total

    return Scenario(function, [call(torch.zeros(2))] * 12, before=before, after=after)


@scenario(breaks=None)
def test_hooks_and_backward_inside_185768() -> Scenario:
    """Tensor hooks, `retain_grad` and `backward` within the function, in eager's order."""
    weight = torch.full((2,), 2.0, requires_grad=True)
    arrived: list[Tensor] = []

    def function(x: Tensor) -> Any:
        product = weight * x
        product.retain_grad()
        product.register_hook(lambda g: g * 3)
        weight.register_hook(lambda g: arrived.append(g.clone()))
        loss = (product**2).sum()
        loss.backward()
        return loss.detach(), product.grad

    def after(index: int, result: Any) -> Any:
        assert weight.grad is not None
        grad, weight.grad = weight.grad.clone(), None
        return grad, list(arrived)

    return Scenario(function, [call(torch.arange(2.0)), call(torch.ones(2))], after=after)

"""Whatever changes between two calls is noticed, however warm the compiled callable is.

Each row makes one change to a world of its own after enough calls for the checker to remember what
it can; the next calls, compiled, must do what plain Python does with the changed world.
"""

import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dynacap
from dynacap.config import config
from dynacap.guards.choose import C_IMPORT_ERROR

SOURCE = """
import torch
from torch import nn

SCALE = 2.0

def helper(x):
    return x * SCALE

def make(factor):
    def function(x, by=1.0, *, plus=0.5):
        return x * factor * by + plus
    def rebind(value):
        nonlocal factor
        factor = value
    return function, rebind

class Base(nn.Module):
    offset = 1.0
    def shift(self, x):
        return x + self.offset

class Other:
    def shift(self, x):
        return x - 7.0

class Layer(Base):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2, 2), 3.0))
        self.register_buffer("bias", torch.ones(2))
        self.eps = 0.25
        self.sizes = [1, 2]
        self.table = {"a": 1.0}

    def forward(self, x):
        y = self.shift(x) @ self.weight + self.bias * self.eps
        if self.training:
            y = y + 100.0
        return y * self.sizes[1] + self.table["a"]

class Special(Layer):
    def shift(self, x):
        return x * -1.0

class Plain:
    value = 1.0
    def __init__(self):
        self.own = 2.0
    def read(self):
        return self.own + self.value

class PlainChild(Plain):
    value = 50.0

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.named = nn.ModuleDict({"one": Layer()})
        self.function, self.rebind = make(1.5)
        self.plain = Plain()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = self.named["one"](x)
        return self.function(helper(x)) + self.plain.read() + x.requires_grad
"""


class World:
    """A model whose classes, functions and module are its own."""

    def __init__(self) -> None:
        self.names = types.ModuleType("changing_world")
        exec(SOURCE, self.names.__dict__)
        self.model = self.names.Model().eval()
        self.layer = self.model.layers[1]


def set_dict(w: World) -> None:
    w.layer.__dict__ = {**w.layer.__dict__, "eps": 9.0}


def shadow_method(w: World) -> None:
    w.layer.shift = lambda x: x + 30.0


def from_a_thread(w: World) -> None:
    thread = threading.Thread(target=lambda: setattr(w.layer, "eps", 8.0))
    thread.start()
    thread.join()


def replace_parameter(w: World) -> None:
    w.layer.weight = torch.nn.Parameter(torch.full((2, 2), 4.0))


def replace_parameter_by_another_shape(w: World) -> None:
    w.layer.weight = torch.nn.Parameter(torch.full((2, 2), 4.0).double().float().t())


def exchange_data(w: World) -> None:
    w.layer.weight.data = torch.full((2, 2), 5.0)


def exchange_dtypes(w: World) -> None:
    w.model.double().float()
    w.layer.weight.data = torch.eye(2)


def resize_buffer(w: World) -> None:
    w.layer.bias.resize_(1).fill_(6.0)


def transpose_parameter(w: World) -> None:
    w.layer.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    w.layer.weight.data.t_()


def swap_tensors(w: World) -> None:
    torch.utils.swap_tensors(w.layer.weight, torch.nn.Parameter(torch.full((2, 2), 7.0)))


def register_hook(w: World) -> None:
    w.layer.register_forward_hook(lambda module, args, output: output + 1000.0)


def register_global_hook(w: World) -> None:
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, output: output * 2.0 if type(module) is w.names.Layer else None
    )
    w.cleanup = handle.remove  # type: ignore[attr-defined]


def set_bases(w: World) -> None:
    w.names.Layer.__bases__ = (w.names.Other, w.names.Base)


def replace_code(w: World) -> None:
    w.names.helper.__code__ = (lambda x: x + 21.0).__code__


CHANGES: dict[str, Callable[[World], object]] = {
    "attribute set": lambda w: setattr(w.layer, "eps", 0.5),
    "attribute set to another type": lambda w: setattr(w.layer, "eps", 1),
    "attribute deleted": lambda w: delattr(w.layer, "eps"),
    "class attribute shadowed": lambda w: setattr(w.layer, "offset", 5.0),
    "method shadowed": shadow_method,
    "__dict__ replaced": set_dict,
    "__class__ assigned": lambda w: setattr(w.layer, "__class__", w.names.Special),
    "__class__ of a plain object": lambda w: setattr(
        w.model.plain, "__class__", w.names.PlainChild
    ),
    "parameter replaced": replace_parameter,
    "parameter of another layout": replace_parameter_by_another_shape,
    "data exchanged": exchange_data,
    "data exchanged twice": exchange_dtypes,
    "data transposed": transpose_parameter,
    "buffer resized": resize_buffer,
    "tensors swapped": swap_tensors,
    "frozen": lambda w: w.model.requires_grad_(False),
    "one frozen": lambda w: w.layer.weight.requires_grad_(False),
    "parameter deleted": lambda w: delattr(w.layer, "weight"),
    "training": lambda w: w.model.train(),
    "training of one": lambda w: w.layer.train(),
    "module in a list replaced": lambda w: w.model.layers.__setitem__(1, w.names.Special().eval()),
    "module in a dict replaced": lambda w: w.model.named.update({"one": w.names.Special().eval()}),
    "module added": lambda w: w.model.layers.append(w.names.Layer().eval()),
    "module removed": lambda w: w.model.layers.__delitem__(0),
    "item of a list": lambda w: w.layer.sizes.__setitem__(1, 9),
    "item of a dict": lambda w: w.layer.table.__setitem__("a", 9.0),
    "hook registered": register_hook,
    "global hook registered": register_global_hook,
    "class attribute": lambda w: setattr(w.names.Base, "offset", 4.0),
    "class attribute in a subclass": lambda w: setattr(w.names.Layer, "offset", 6.0),
    "method replaced": lambda w: setattr(w.names.Base, "shift", lambda self, x: x - 3.0),
    "method in a subclass": lambda w: setattr(w.names.Layer, "shift", lambda self, x: x - 4.0),
    "bases": set_bases,
    "global rebound": lambda w: setattr(w.names, "SCALE", 3.0),
    "global function rebound": lambda w: setattr(w.names, "helper", lambda x: x + 11.0),
    "cell rebound": lambda w: w.model.rebind(2.5),
    "default": lambda w: setattr(w.model.function, "__defaults__", (3.0,)),
    "keyword default": lambda w: setattr(w.model.function, "__kwdefaults__", {"plus": 4.0}),
    "keyword default in place": lambda w: w.model.function.__kwdefaults__.update(plus=5.0),
    "code": replace_code,
    "function replaced": lambda w: setattr(w.model, "function", w.names.make(4.5)[0]),
    "another thread": from_a_thread,
}
CHECKERS = [
    "python",
    pytest.param("c", marks=pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="needs C")),
]


def outcome(call: Callable[[Any], Any], x: Any) -> object:
    """What a call gives: values and requires_grad, or the kind of error."""
    try:
        result = call(x)
    except (AttributeError, RuntimeError) as error:
        return type(error)
    return (*result.detach().flatten().tolist(), result.requires_grad)


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("grad", [True, False])
def test_change_is_noticed(checker: str, name: str, grad: bool) -> None:
    x = torch.tensor([[1.0, 2.0]])
    with config.patch(checker=checker), torch.set_grad_enabled(grad):
        world = World()
        compiled = dynacap.compile(world.model, backend="eager")
        for _ in range(12):
            assert outcome(compiled, x) == outcome(world.model, x)
        before = outcome(world.model, x)
        try:
            CHANGES[name](world)
            after = outcome(world.model, x)
            for _ in range(3):
                assert outcome(compiled, x) == after
        finally:
            getattr(world, "cleanup", lambda: None)()
    assert (after != before) or name in ("frozen", "one frozen", "parameter of another layout")


@pytest.mark.parametrize("checker", CHECKERS)
def test_instance_of_a_subclass(checker: str) -> None:
    """Another object of the class that was seen, and one of a subclass, in the same place."""
    with config.patch(checker=checker):
        world = World()

        def call(layer: Any, x: Any) -> Any:
            return layer(x)

        compiled = dynacap.compile(call, backend="eager")
        x = torch.ones(1, 2)
        layers = [world.layer, world.names.Special().eval(), world.names.Layer().eval()]
        layers[2].eps = 3.0
        for layer in (*layers, *layers, *[world.layer] * 10, *layers, *layers):
            assert torch.equal(compiled(layer, x), layer(x))


@pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="needs C")
def test_most_is_remembered() -> None:
    """These tests are about the checker's memory, so it had better be used."""
    with config.patch(checker="c"):
        world = World()
        compiled: Any = dynacap.compile(world.model, backend="eager")
        for _ in range(20):
            compiled(torch.ones(1, 2))
        places = compiled._dynacap_session._functions.values()
        checkers = [entry.checker for place in places for entry in place.table.entries]
    assert max(checker.recalled for checker in checkers) > 10


class Answering(types.ModuleType):
    """A class of modules that answers by itself."""

    @property
    def size(self) -> float:
        return 5.0

    def __getattr__(self, name: str) -> float:
        return 7.0


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_module_is_given_another_class(checker: str) -> None:
    module: Any = types.ModuleType("answering")
    module.size = 2.0

    def call(x: Any) -> Any:
        return x * module.size + getattr(module, "absent", 1.0)

    x = torch.ones(1)
    with config.patch(checker=checker):
        compiled = dynacap.compile(call, backend="eager")
        for cls, expected in ((types.ModuleType, 3.0), (Answering, 12.0), (types.ModuleType, 3.0)):
            module.__class__ = cls
            for _ in range(6):
                assert compiled(x).item() == call(x).item() == expected

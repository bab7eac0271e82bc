"""A compiled module is the user's module in all but speed."""

import copy
import gc
import inspect
import io
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap.hook import choose_hook

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


class Net(nn.Module):
    """A module that pickle can find."""

    made = 0

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 3)
        self.norm = nn.BatchNorm1d(3)
        self.k = 2

    def __init_subclass__(cls, **kwargs: Any) -> None:
        Net.made += 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.layer(x)) * self.k
        return y if self.training else -y

    def extra(self, x: Tensor) -> Tensor:
        return x + self.k


def pair() -> tuple[Net, Any]:
    """A module, and a compiled copy of it."""
    net = Net()
    return net, dynacap.compile(copy.deepcopy(net))


def test_it_is_the_users_class() -> None:
    net, compiled = pair()
    assert isinstance(compiled, Net)
    assert type(compiled).__name__ == "Net"
    assert type(compiled).__module__ == Net.__module__
    assert repr(compiled) == repr(net)
    assert Net.made == 0
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [name for name, _ in compiled.named_parameters()] == [
        name for name, _ in net.named_parameters()
    ]


def test_state_goes_both_ways() -> None:
    net = Net()
    compiled = dynacap.compile(net)
    compiled.k = 5
    assert net.k == 5
    net.added = nn.Linear(1, 1)  # type: ignore[assignment]
    assert compiled.added is net.added
    compiled.eval()
    assert not net.training
    assert not net.layer.training
    del compiled.added
    assert not hasattr(net, "added")


def test_train_eval_and_attributes_change_results() -> None:
    net, compiled = pair()
    for change in (lambda m: m.eval(), lambda m: m.train(), lambda m: setattr(m, "k", 7)):
        change(net)
        change(compiled)
        assert torch.equal(compiled(X), net(X))
    assert torch.equal(compiled.norm.running_mean, net.norm.running_mean)


def test_to_another_dtype_and_new_weights() -> None:
    net, compiled = pair()
    net.to(torch.float64)
    assert compiled.to(torch.float64) is compiled
    assert torch.equal(compiled(X.double()), net(X.double()))
    state = Net().double().state_dict()
    net.load_state_dict(state)
    compiled.load_state_dict(state)
    assert torch.equal(compiled(X.double()), net(X.double()))


def test_forward_and_other_methods_called_directly() -> None:
    net, compiled = pair()
    assert torch.equal(compiled.forward(X), net.forward(X))
    assert torch.equal(compiled.extra(X), net.extra(X))


def test_hooks_before_and_after_compiling() -> None:
    for early in (True, False):
        seen: list[tuple[int, ...]] = []
        net = Net()
        if early:
            net.register_forward_hook(lambda m, args, out, seen=seen: seen.append(out.shape))
        compiled = dynacap.compile(net)
        compiled(X)
        if not early:
            compiled.register_forward_hook(lambda m, args, out: out * 100)
            again = copy.deepcopy(net)
            again.norm.reset_running_stats()
            assert torch.equal(compiled(X), again(X))
        else:
            assert seen == [(2, 3)]


@pytest.mark.parametrize("how", ["deepcopy", "copy", "pickle", "torch.save"])
def test_copies(how: str) -> None:
    compiled = dynacap.compile(Net())
    compiled(X)
    if how == "deepcopy":
        twin = copy.deepcopy(compiled)
    elif how == "copy":
        twin = copy.copy(compiled)
    elif how == "pickle":
        twin = pickle.loads(pickle.dumps(compiled))
    else:
        buffer = io.BytesIO()
        torch.save(compiled, buffer)
        buffer.seek(0)
        twin = torch.load(buffer, weights_only=False)
    assert type(twin) is type(compiled)
    compiled.eval()
    twin.eval()
    assert torch.equal(twin(X), compiled(X))
    assert (twin.layer.weight is compiled.layer.weight) == (how == "copy")


def test_a_compiled_layer_inside_an_eager_model() -> None:
    model = nn.Sequential(Net(), nn.Linear(3, 2))
    keys = list(model.state_dict())
    wanted = model(X)
    model[0] = dynacap.compile(model[0])
    assert list(model.state_dict()) == keys
    assert [type(m).__name__ for m in model.modules()][:2] == ["Sequential", "Net"]
    assert torch.equal(model(X), wanted)
    model.load_state_dict(copy.deepcopy(model).state_dict())
    model.double()
    assert model[0].layer.weight.dtype == torch.float64


def test_a_compiled_layer_inside_a_compiled_model() -> None:
    model = nn.Sequential(Net(), nn.Linear(3, 2))
    wanted = model(X)
    model[0] = dynacap.compile(model[0])
    outer = dynacap.compile(model)
    assert torch.equal(outer(X), wanted)
    assert dynacap.counters()["breaks"] == 0
    assert dynacap.counters()["graphs"] == 1


def test_gradients_reach_the_parameters() -> None:
    net, compiled = pair()
    for model in (net, compiled):
        model(X).square().sum().backward()
    for one, other in zip(net.parameters(), compiled.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]


def test_a_class_whose_metaclass_is_the_users() -> None:
    class Meta(type):
        calls: list[str] = []

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            Meta.calls.append(cls.__name__)
            return super().__call__(*args, **kwargs)

    class Odd(nn.Module, metaclass=Meta):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    compiled = dynacap.compile(Odd())
    assert torch.equal(compiled(X), X + 1)
    assert Meta.calls == ["Odd"]


def test_dropped_at_once() -> None:
    net = Net()
    gone = weakref.ref(net)
    compiled = dynacap.compile(net)
    compiled(X)
    dynacap.explain(compiled)(X)
    gc.collect()
    gc.disable()
    try:
        del compiled, net
        assert gone() is None
    finally:
        gc.enable()


class Sums(nn.Module):
    """Takes arguments in every form."""

    def forward(self, x: Tensor, *more: Tensor, k: int = 1, **named: Tensor) -> Any:
        for other in (*more, *named.values()):
            x = x + other
        return x * k


def test_arguments_of_every_form() -> None:
    model, x = Sums(), torch.ones(3)
    compiled = dynacap.compile(model, backend="eager")
    many = {f"a{i}": x * i for i in range(30)}
    forms: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}), ((), {"x": x}), ((x, x), {"k": 2}), ((x, x), {"k": 2, **many}), ((x,) * 40, {}),
    ]  # fmt: skip
    for args, kwargs in forms * 3:
        assert torch.equal(compiled(*args, **kwargs), model(*args, **kwargs))
    for call in (compiled, model):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            call()
    whole = dynacap.compile(lambda x: compiled(x, k=3) + 1, backend="eager", fullgraph=True)
    assert torch.equal(whole(x), x * 3 + 1)


@pytest.mark.skipif(not choose_hook().capabilities.replaces_running_frame, reason="needs C")
def test_no_python_stands_between() -> None:
    """From the call to the graph's own function, C alone runs."""
    model = Sums()
    compiled = dynacap.compile(model, backend=lambda graph, inputs: seen)
    frames: list[str] = []

    def seen(*values: Any) -> Any:
        frame = inspect.currentframe()
        assert frame is not None
        caller = frame.f_back
        assert caller is not None
        frames.append(caller.f_code.co_name)
        return (values[0],)

    for _ in range(3):
        compiled(torch.ones(2))
    assert frames[-1] == "test_no_python_stands_between"

"""`nn.Module`: containers, parameters, buffers, hooks, parametrizations, training."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from dynacap.testing import Scenario, call, program, scenario

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def seeded(make: Any) -> Any:
    torch.manual_seed(0)
    return make()


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(2)])
        self.table = nn.ParameterDict({"w": nn.Parameter(torch.ones(3))})
        self.tail = nn.Sequential(nn.Linear(3, 2), nn.GELU(), nn.Dropout(0.0))

    def forward(self, x: Tensor, kind: str = "a") -> Any:
        for i, layer in enumerate(self.stack):
            x = layer(x) * self.scales[i % 2]
        x = self.named[kind](x) * self.table["w"]
        for name, module in self.named.items():
            x = x + len(name) + len(list(module.children()))
        return (
            self.tail(x[:, :3]),
            len(self.stack),
            "a" in self.named,
            self.stack[-1](x),
            self.tail[1](x),
        )


class Counting(nn.Module):
    """Writes buffers and plain attributes in forward."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.register_parameter("missing", None)
        self.steps, self.last = 0, None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.hidden = x.mean(0)
        self.steps += 1
        self.last = x
        return x * self.calls if self.missing is None else x


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x) + self.b(x)


class Wrapped(nn.Module):
    """Attribute lookup falls through to what it wraps."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x: Tensor) -> Any:
        return self.inner(x), self.in_features, self.weight.sum()


class Enumerates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Any:
        total = sum(p.sum() for p in self.parameters())
        names = [n for n, _ in self.named_parameters()], [n for n, _ in self.named_buffers()]
        kinds = [type(m).__name__ for m in self.modules()], [n for n, _ in self.named_children()]
        state = list(self.state_dict())
        return x + total, names, kinds, state, self.get_parameter("a.weight").shape, self.training


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor) -> Any:
        h = c = x.new_zeros(1, 4)
        out = []
        for step in x:
            h, c = self.cell(step[None], (h, c))
            out.append(h)
        return torch.cat(out), c


class ByName(nn.Module):
    """Layers found through getattr with a made-up name, as older models do."""

    def __init__(self) -> None:
        super().__init__()
        for i in range(2):
            setattr(self, f"layer{i}", nn.Linear(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        for i in range(2):
            x = getattr(self, f"layer{i}")(x)
        return x


class WithMethods(nn.Module):
    """Several entry points, a property, a static method, a submodule called by `forward`."""

    scale: float = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.activation = torch.relu

    @property
    def width(self) -> int:
        return self.inner.out_features

    @staticmethod
    def shift(x: Tensor) -> Tensor:
        return x + 1

    def encode(self, x: Tensor) -> Tensor:
        return self.activation(self.inner.forward(x)) * self.width

    def forward(self, x: Tensor, *, flag: bool = False) -> Tensor:
        return self.shift(self.encode(x)) * (self.scale if flag else 1.0)


def modules(make: Any, *calls: Any, train: bool = True, breaks: int | None = 0) -> Any:
    """A test that calls a freshly made module, in training or evaluation."""
    made = list(calls) or [call(X.clone())] * 2

    def decorate(function: Any) -> Any:
        def build() -> Scenario:
            return Scenario(seeded(make).train(train), copy.deepcopy(made))

        build.__name__, build.__doc__ = function.__name__, function.__doc__
        return scenario(breaks=breaks)(build)

    return decorate


@modules(Containers, call(X), call(X, "b"), call(X, kind="a"))
def test_containers() -> None: ...


@modules(Counting, *[call(X)] * 3)
def test_buffers_and_attributes_written() -> None: ...


@modules(Shared)
def test_shared_parameters() -> None: ...


@modules(lambda: Wrapped(nn.Linear(3, 3)))
def test_own_getattr() -> None: ...


@modules(Enumerates)
def test_walking_parameters_and_modules() -> None: ...


@modules(Recurrent)
def test_lstm_cell_in_loop() -> None: ...


@modules(ByName)
def test_layers_by_name() -> None: ...


@modules(WithMethods, call(X), call(X, flag=True))
def test_methods_and_properties() -> None: ...


@modules(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)))
def test_batch_norm_in_training() -> None: ...


@modules(lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.AlphaDropout(0.2)))
def test_dropout_uses_eagers_random_stream() -> None: ...


@modules(lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.LayerNorm(4)), train=False)
def test_evaluation_mode() -> None: ...


@modules(lambda: nn.LSTM(3, 4, num_layers=2, batch_first=True), call(X[None]), breaks=None)
def test_lstm() -> None: ...


@modules(lambda: nn.GRU(3, 4, bidirectional=True), call(X[None]), breaks=None)
def test_gru() -> None: ...


@modules(lambda: nn.MultiheadAttention(4, 2, batch_first=True), call(*[torch.ones(1, 3, 4)] * 3))
def test_multihead_attention() -> None: ...


@modules(lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), call(torch.ones(1, 3, 4)))
def test_transformer_encoder_layer() -> None: ...


@modules(
    lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    call(torch.ones(1, 3, 4)),
    train=False,
)
def test_transformer_encoder_layer_in_evaluation() -> None: ...


@modules(
    lambda: nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Flatten()
    ),
    call(torch.arange(16.0).reshape(1, 1, 4, 4)),
)
def test_convolution_pooling_upsampling() -> None: ...


@modules(
    lambda: nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 2)),
    call(torch.tensor([[1, 0, 3]])),
)
def test_embedding() -> None: ...


@modules(
    lambda: nn.EmbeddingBag(10, 4, mode="sum"), call(torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
)
def test_embedding_bag() -> None: ...


@modules(lambda: parametrizations.weight_norm(nn.Linear(3, 3)))
def test_weight_norm_parametrization() -> None: ...


@modules(lambda: parametrizations.spectral_norm(nn.Linear(3, 3)))
def test_spectral_norm_parametrization() -> None: ...


@modules(lambda: parametrizations.orthogonal(nn.Linear(3, 3)), breaks=None)
def test_orthogonal_parametrization() -> None: ...


@modules(lambda: nn.LazyLinear(2), breaks=None)
def test_lazy_module() -> None: ...


@scenario()
def test_forward_hooks() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    seen: list[Any] = []
    net[0].register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    net[0].register_forward_hook(lambda m, args, out: out * 2)
    net[1].register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    net.register_forward_hook(lambda m, args, kw, out: out - 1, with_kwargs=True)
    return Scenario(net, [call(X.clone())] * 2, watch=lambda: seen)


@scenario()
def test_hooks_come_and_go() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    handles: list[Any] = []

    def before(index: int) -> None:
        if index == 1:
            handles.append(net[1].register_forward_hook(lambda m, args, out: out + 100))
        if index == 2:
            handles.pop().remove()

    return Scenario(net, [call(X.clone())] * 3, before=before)


@scenario(breaks=None)
def test_backward_hooks() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)))
    seen: list[Any] = []
    net[0].register_full_backward_hook(lambda m, gi, go: seen.append(go[0].clone()))
    net[2].weight.register_hook(lambda g: g * 2)
    calls = [call(X.clone().requires_grad_())] * 2
    return Scenario(net, calls, after=lambda i, r: list(seen))


@scenario()
def test_train_and_eval_between_calls() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3)))

    def before(index: int) -> None:
        net.train(index % 2 == 0)

    return Scenario(net, [call(X.clone())] * 4, before=before)


@scenario()
def test_parameter_replaced_between_calls() -> Scenario:
    net = seeded(lambda: nn.Linear(3, 3))

    def before(index: int) -> None:
        if index == 1:
            net.weight = nn.Parameter(torch.ones(3, 3))
        if index == 2:
            net.weight.data.mul_(2)
        if index == 3:
            net.bias = None
        if index == 4:
            net.weight.requires_grad_(False)

    return Scenario(net, [call(X.clone())] * 5, before=before)


@scenario()
def test_submodule_replaced_between_calls() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()))

    def before(index: int) -> None:
        if index == 1:
            net[1] = nn.Tanh()
        if index == 2:
            net.append(nn.Linear(3, 1))

    return Scenario(net, [call(X.clone())] * 3, before=before)


@scenario()
def test_method_compiled() -> Scenario:
    return Scenario(seeded(WithMethods).encode, [call(X.clone())] * 2)


@scenario()
def test_two_instances_of_one_class() -> Scenario:
    nets = [seeded(lambda: nn.Linear(3, 3)), nn.Linear(3, 3)]

    def function(x: Tensor, which: int) -> Any:
        return nets[which](x)

    return Scenario(function, [call(X.clone(), i) for i in (0, 1, 0)])


@scenario(breaks=None)
def test_training_step() -> Scenario:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Scenario(step, [call(X.clone(), torch.ones(4, 1))] * 3, watch=lambda: net)


@program((X, nn.Parameter(torch.ones(3))))
def test_parameter_as_argument(x: Tensor, w: Any) -> Any:
    return x * w, isinstance(w, nn.Parameter), type(w + 1) is Tensor


@program((X,))
def test_module_made_inside(x: Tensor) -> Any:
    return nn.ReLU()(x), nn.Flatten(0)(x)


@program((X,), breaks=None)
def test_module_with_parameters_made_inside(x: Tensor) -> Any:
    layer = nn.Linear(3, 2)
    return layer(x)

"""What `native.py` measures, in the groups (a) to (f)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from zoo import ZOO
from zoo.entry import Built

Step = Callable[[Callable[..., Any]], Any]


@dataclass(frozen=True)
class Made:
    """A case ready to run: what is compiled, and how it is called once.

    `moves` is how many bytes it must read and write at least, where that decides.
    """

    target: Any
    call: Step
    moves: int = 0


@dataclass(frozen=True)
class Case:
    """A case by name; `make` gives the same weights and inputs each time."""

    group: str
    name: str
    make: Callable[[], Made]
    train: bool = False


CASES: dict[str, Case] = {}
SMALL, LARGE = 1_000, 4_000_000


def case(
    group: str, name: str, make: Callable[[], Made], *, train: bool = False
) -> None:  # fmt: skip
    """Add a case."""
    CASES[f"{group} {name}"] = Case(group, name, make, train)


def function(target: Callable[..., Any], *inputs: Any, moves: int = 0) -> Made:
    """A function called on the same inputs each time."""
    return Made(target, lambda compiled: compiled(*inputs), moves)


def traffic(*tensors: Tensor) -> int:
    """The bytes of tensors that are read or written once."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


# -- (a) chains of pointwise operations ------------------------------------------------------------

STEPS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda x, y: x * y,
    lambda x, y: x + 1,
    lambda x, y: torch.relu(x),
    lambda x, y: x - y,
    lambda x, y: torch.maximum(x, y),
    lambda x, y: x * 0.5,
    lambda x, y: torch.abs(x),
    lambda x, y: torch.where(x > 1, y, x),
    lambda x, y: x / 1.5,
    lambda x, y: torch.clamp(x, -3, 3),
)


def chain(length: int, *, transcendental: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """A chain of so many operations; every fifth an exponential or its like, if wanted."""

    def run(x: Tensor, y: Tensor) -> Tensor:
        for index in range(length):
            if transcendental and index % 5 == 4:
                x = torch.sigmoid(x) if index % 2 else torch.tanh(x)
            else:
                x = STEPS[index % len(STEPS)](x, y)
        return x

    return run


def chain_case(length: int, size: int, transcendental: bool) -> Made:
    torch.manual_seed(0)
    x, y = torch.randn(size), torch.randn(size)
    return function(chain(length, transcendental=transcendental), x, y, moves=traffic(x, y, x))


for _length in (10, 50):
    for _size in (SMALL, 100_000, LARGE):
        for _functions in (False, True):
            case(
                "a",
                f"{_length} operations{' with tanh' if _functions else ''}, {_size:,}",
                partial(chain_case, _length, _size, _functions),
            )


# -- (b) what models are made of -------------------------------------------------------------------


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def layer_norm_by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def attention_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    hidden = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    weights: Tensor = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return weights @ v


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return (torch.logsumexp(logits, -1) - logits.gather(-1, labels[:, None]).squeeze(-1)).mean()


def blocks(rows: int, columns: int) -> Iterator[tuple[str, Callable[[], Made]]]:
    """Each block on `rows` rows of `columns`, with the bytes that it must move."""

    def on(block: Callable[..., Any], *weights: int) -> Callable[[], Made]:
        def make() -> Made:
            torch.manual_seed(0)
            x = torch.randn(rows, columns)
            more = [torch.randn(size) for size in weights]
            return function(block, x, *more, moves=traffic(x, x, *more))

        return make

    def mlp() -> Made:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(columns, 4 * columns), nn.GELU(), nn.Linear(4 * columns, columns)
        )
        x = torch.randn(max(rows // 16, 1), columns)
        return function(model.requires_grad_(False), x)

    def rotating() -> Made:
        torch.manual_seed(0)
        x = torch.randn(rows // 64, 8, 8, columns)
        angles = torch.randn(8, columns)
        return function(rotary, x, angles.cos(), angles.sin(), moves=traffic(x, x))

    def attending() -> Made:
        torch.manual_seed(0)
        length = min(rows, 256)
        return function(attention_by_hand, *(torch.randn(2, 4, length, 32) for _ in range(3)))

    def loss() -> Made:
        torch.manual_seed(0)
        x, labels = torch.randn(rows, columns), torch.randint(columns, (rows,))
        return function(cross_entropy, x, labels, moves=traffic(x, labels))

    yield "softmax", on(lambda x: torch.softmax(x, -1))
    yield "layer norm", on(lambda x, w, b: F.layer_norm(x, w.shape, w, b), columns, columns)
    yield "layer norm by hand", on(layer_norm_by_hand, columns, columns)
    yield "RMS norm", on(rms_norm, columns)
    yield "GELU MLP", mlp
    yield "rotary embedding", rotating
    yield "attention by hand", attending
    yield "cross entropy", loss


for _rows, _columns in ((64, 64), (8192, 512)):
    for _name, _make in blocks(_rows, _columns):
        case("b", f"{_name}, {_rows} x {_columns}", _make)


# -- (c) models, forward; (d) training -------------------------------------------------------------

FORWARD = """minilm_real_weights bert roberta deberta_v2 modernbert gpt2 llama qwen2 gemma2
    mixtral t5 mamba vit swin convnext resnet mobilenet_v2 whisper cnn_batch_norm unet
    multihead_attention recommender graph_convolution""".split()
TRAINING = "bert gpt2 llama vit cnn_batch_norm".split()


def model_case(name: str) -> Made:
    built = ZOO[name].build()
    return Made(built.model, built.drive)


def training_case(name: str) -> Made:
    built = ZOO[name].build(train=True)
    return Made(built.model, lambda compiled: train_step(built, compiled))


def train_step(built: Built, compiled: Callable[..., Any]) -> list[Tensor]:
    """Forward, backward, and the gradients, which are then let go."""
    torch.default_generator.manual_seed(1)  # torch's own asks for a traceback for each other device
    results = [one for one in floats(built.drive(compiled)) if one.requires_grad]
    torch.stack([one.float().square().mean() for one in results]).sum().backward()
    parameters = list(built.model.parameters())  # type: ignore[attr-defined]
    gradients = [one.grad for one in parameters if one.grad is not None]
    for one in parameters:
        one.grad = None
    return gradients


def floats(value: Any) -> Iterator[Tensor]:
    """The floating-point tensors in a result."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        yield from floats(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from floats(item)


for _name in FORWARD:
    case("c", _name, partial(model_case, _name))
for _name in TRAINING:
    case("d", _name, partial(training_case, _name), train=True)


# -- (e) an optimizer's step -----------------------------------------------------------------------


def optimizer_case(kind: Callable[..., torch.optim.Optimizer], **options: Any) -> Made:
    torch.manual_seed(0)
    sizes = [(256, 256), (256,), (1024, 256), (1024,), (256, 1024), (256,)] * 4
    parameters = [nn.Parameter(torch.randn(size)) for size in sizes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = kind(parameters, **options)
    optimizer.step()
    return Made(optimizer.step, lambda compiled: (compiled(), parameters)[1])


case("e", "SGD with momentum", lambda: optimizer_case(torch.optim.SGD, lr=1e-3, momentum=0.9))
case("e", "Adam", lambda: optimizer_case(torch.optim.Adam, lr=1e-3))
case("e", "AdamW", lambda: optimizer_case(torch.optim.AdamW, lr=1e-3, foreach=False))


# -- (f) batch 1, where overhead rules -------------------------------------------------------------


def policy_case() -> Made:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 64),
        nn.Tanh(),
        nn.LayerNorm(64),
        nn.Linear(64, 64),
        nn.Tanh(),
        nn.Linear(64, 4),
    ).requires_grad_(False)
    return function(lambda x: torch.softmax(model(x), -1), torch.randn(1, 8))


class Decoder(nn.Module):
    """Two blocks that decode one token with a cache of keys and values."""

    keys: Tensor
    kept: Tensor

    def __init__(self, width: int = 64, heads: int = 4, length: int = 128) -> None:
        super().__init__()
        self.heads = heads
        self.projections = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(2))
        self.register_buffer("keys", torch.randn(2, heads, length, width // heads))
        self.register_buffer("kept", torch.randn(2, heads, length, width // heads))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        for layer in range(2):
            q, k, v = self.projections[layer](norm(x)).view(3, self.heads, 1, -1).unbind(0)
            keys = self.keys[layer].index_copy(1, at, k)
            values = self.kept[layer].index_copy(1, at, v)
            mixed = (q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ values
            x = x + self.out[layer](mixed.reshape(1, -1))
            x = x + self.down[layer](F.silu(self.up[layer](norm(x))))
        return x


def norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def decoding_case() -> Made:
    torch.manual_seed(0)
    model = Decoder().requires_grad_(False)
    return function(model, torch.randn(1, 64), torch.tensor([5]))


case("f", "policy network", policy_case)
case("f", "one token with a cache", decoding_case)

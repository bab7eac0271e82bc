"""Programs in plain PyTorch, as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.entry import AnyFunction, Built, Entry, calls


class ConvNet(nn.Module):
    """Convolutions with batch norm, then a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Any:
        return self.classifier(self.features(x).flatten(1))


def double_convolution(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.SiLU()
    )


class UNet(nn.Module):
    """Down and up with skip connections kept in a list."""

    def __init__(self) -> None:
        super().__init__()
        widths = (4, 8, 16)
        self.down = nn.ModuleList(
            double_convolution(a, b) for a, b in zip((3, *widths), widths, strict=False)
        )
        self.up = nn.ModuleList([double_convolution(24, 8), double_convolution(12, 4)])
        self.head = nn.Conv2d(4, 1, 1)

    def forward(self, x: Tensor) -> Any:
        skips = []
        for block in self.down[:-1]:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.down[-1](x)
        for block, skip in zip(self.up, reversed(skips), strict=True):
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skip], dim=1))
        return self.head(x)


class Tagger(nn.Module):
    """Embedding, a two-way LSTM, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(24, 5)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        hidden, (last, _) = self.lstm(self.embed(tokens))
        return self.out(hidden), last


class CellLoop(nn.Module):
    """An LSTM cell in a Python loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Any:
        state = (x.new_zeros(x.size(0), 8), x.new_zeros(x.size(0), 8))
        predictions = []
        for step in x.unbind(1):
            state = self.cell(step, state)
            predictions.append(self.out(state[0]))
        return torch.cat(predictions, dim=1)


class Attention(nn.Module):
    """`nn.MultiheadAttention` with a padding mask and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attend = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        n = x.size(1)
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        y = self.norm(x)
        out, weights = self.attend(y, y, y, key_padding_mask=padding, attn_mask=causal)
        return x + out, weights


class Recommender(nn.Module):
    """Embedding bags for the categories, pairwise products, two small networks."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense: Tensor, bags: list[Tensor], offsets: list[Tensor]) -> Tensor:
        x = self.bottom(dense)
        parts = [x] + [t(b, o) for t, b, o in zip(self.tables, bags, offsets, strict=True)]
        stacked = torch.stack(parts, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, columns = torch.tril_indices(len(parts), len(parts), offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], dim=1)))


class GraphLayer(nn.Module):
    """One graph convolution: messages along edges, summed with `index_add`."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inside, outside)

    def forward(self, x: Tensor, edges: Tensor) -> Any:
        source, target = edges
        degree = torch.zeros(x.size(0)).index_add_(0, target, torch.ones(target.numel()))
        summed = torch.zeros_like(x).index_add(0, target, x[source])
        return self.linear(summed / degree.clamp(min=1).unsqueeze(-1))


class GraphNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(4, 8), GraphLayer(8, 3)])

    def forward(self, x: Tensor, edges: Tensor) -> Any:
        for i, layer in enumerate(self.layers):
            x = layer(x, edges)
            if i + 1 < len(self.layers):
                x = x.relu()
        return x.log_softmax(-1)


def convnet() -> Built:
    return calls(ConvNet(), *[{"x": torch.randn(4, 3, 8, 8)} for _ in range(3)])


def unet() -> Built:
    return calls(UNet(), *[{"x": torch.randn(1, 3, 16, 16)}] * 2)


def lstm() -> Built:
    return calls(Tagger(), *[{"tokens": torch.randint(0, 50, (2, 6))}] * 2)


def cell_loop() -> Built:
    return calls(CellLoop(), *[{"x": torch.randn(3, 5, 4)}] * 2)


def attention() -> Built:
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[0, 4:] = True
    return calls(Attention(), *[{"x": torch.randn(2, 5, 16), "padding": padding}] * 2)


def recommender() -> Built:
    bags = [torch.randint(0, 20, (6,)) for _ in range(3)]
    offsets = [torch.tensor([0, 2, 3, 5])] * 3
    inputs = {"dense": torch.randn(4, 5), "bags": bags, "offsets": offsets}
    return calls(Recommender(), *[inputs] * 2)


def graph_net() -> Built:
    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    return calls(GraphNet(), *[{"x": torch.randn(5, 4), "edges": edges}] * 2)


def hooked() -> Built:
    """Forward hooks and pre-hooks that change values and keep statistics."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    norms: list[Tensor] = []
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 0.5,))
    model[1].register_forward_hook(lambda module, args, out: norms.append(out.norm()))
    model[2].register_forward_hook(lambda module, args, out: out.clamp(-1, 1))
    x = torch.randn(3, 4)
    return Built(model, lambda target: [[target(x) for _ in range(3)], norms])


def training_step() -> Built:
    """Forward, loss, backward and an Adam step, all in one compiled function."""
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    batches = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)]

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    def drive(target: AnyFunction) -> Any:
        return [target(x, y) for x, y in batches]

    return Built(step, drive, state=model)


def rollout() -> Built:
    """Reinforcement learning: sampled actions, a small world, rewards discounted in Python."""
    policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def play(start: Tensor, limit: int) -> tuple[Tensor, list[float], int]:
        state, chances, rewards = start, [], []
        for _ in range(limit):
            log_probability = policy(state).log_softmax(-1)
            action = int(torch.multinomial(log_probability.exp(), 1))
            chances.append(log_probability[action])
            move = 0.3 if action == 1 else -0.3
            state = torch.stack([state[0] + move, state[1] * 0.9])
            rewards.append(1.0 - abs(state[0].item()))
            if abs(state[0].item()) > 1.0:
                break
        returns: list[float] = []
        total = 0.0
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        loss = -(torch.stack(chances) * torch.tensor(returns)).sum()
        return loss, returns, len(rewards)

    def drive(target: AnyFunction) -> Any:
        results = []
        for n in range(3):
            torch.manual_seed(n)
            loss, returns, steps = target(torch.tensor([0.1 * n, 1.0]), 12)
            loss.backward()
            results.append((loss.detach(), returns, steps))
        return results

    return Built(play, drive, state=policy)


def plain(name: str, make: Callable[[], Built], train: bool = True) -> Entry:
    return Entry(name, "plain torch", make, train, grad_in_eval=not train)


ENTRIES = [
    plain("cnn_batch_norm", convnet),
    plain("unet", unet),
    plain("lstm", lstm),
    plain("lstm_cell_loop", cell_loop),
    plain("multihead_attention", attention),
    plain("recommender", recommender),
    plain("graph_convolution", graph_net),
    plain("module_with_hooks", hooked),
    plain("training_step", training_step, train=False),
    plain("policy_rollout", rollout, train=False),
]

"""Whole programs over NumPy arrays, alone and mixed with torch: one graph each, and as eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from dynacap.testing import program

random = np.random.default_rng(0)
POINTS = random.normal(size=(60, 2))
IMAGE = random.uniform(size=(12, 16)).astype(np.float32)
PIXELS = random.integers(0, 256, size=(4, 8, 8, 3), dtype=np.uint8)


@program((POINTS, POINTS[:3].copy()), graphs=1)
def test_k_means(points: Any, centres: Any) -> Any:
    for _ in range(4):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        member = nearest[:, None] == np.arange(3)[None, :]
        counts = np.maximum(member.sum(axis=0), 1)
        centres = (member[:, :, None] * points[:, None, :]).sum(axis=0) / counts[:, None]
    return centres, nearest, np.sqrt(distances.min(axis=1)).mean()


@program((24, 16), graphs=1)
def test_mandelbrot(width: int, height: int) -> Any:
    y, x = np.meshgrid(np.linspace(-1.5, 1.5, height), np.linspace(-2, 1, width), indexing="ij")
    c = x + 1j * y
    z = np.zeros_like(c)
    steps = np.zeros(c.shape, dtype=np.int64)
    for _ in range(12):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps, np.abs(z)


@program((IMAGE, np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], dtype=np.float32)), graphs=1)
def test_image_filter(image: Any, kernel: Any) -> Any:
    padded = np.pad(image, 1)
    height, width = image.shape
    result = np.zeros_like(image)
    for i in range(3):
        for j in range(3):
            result += kernel[i, j] * padded[i : i + height, j : j + width]
    return np.clip(result, -1, 1), result.max(), result.dtype


@program((np.sin(np.linspace(0, 3, 32)), 0.1), graphs=1)
def test_heat_equation(u: Any, step: float) -> Any:
    for _ in range(10):
        u[1:-1] += step * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u.sum(), u[::2]


def layers() -> list[tuple[Any, Any]]:
    """The weights of a small network."""
    sizes = [(4, 8), (8, 8), (8, 3)]
    return [(random.normal(size=size), random.normal(size=size[1])) for size in sizes]


@program((random.normal(size=(5, 4)), layers(), np.array([0, 2, 1, 1, 0])), graphs=1)
def test_network_and_gradient(x: Any, weights: Any, labels: Any) -> Any:
    kept = [x]
    for w, b in weights[:-1]:
        kept.append(np.maximum(kept[-1] @ w + b, 0))
    w, b = weights[-1]
    logits = kept[-1] @ w + b
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    share = shifted / shifted.sum(axis=1, keepdims=True)
    loss = -np.log(share[np.arange(len(labels)), labels]).mean()
    delta = share - (labels[:, None] == np.arange(3))
    for (w, _), before in zip(reversed(weights), reversed(kept), strict=True):
        step = before.T @ delta / len(x)
        delta = delta @ w.T * (before > 0)
        w -= 0.1 * step
    return loss, share


class Classifier(nn.Module):
    """A model that prepares its input with NumPy."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = np.array([0.4, 0.5, 0.6], dtype=np.float32)
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, pixels: Any) -> Any:
        scaled = pixels.astype(np.float32) / 255 - self.mean
        x = torch.from_numpy(scaled.transpose(0, 3, 1, 2).copy())
        x = self.head(self.conv(x).relu().mean(dim=(2, 3)))
        best = x.detach().numpy().argmax(axis=1)
        return x, best


def test_preprocessing_and_model() -> None:
    """A model that goes from pixels to labels through both."""
    from dynacap.testing import check_same

    torch.manual_seed(0)
    check_same(Classifier(), (PIXELS,), (PIXELS,), graphs=1, breaks=0)


@program((random.normal(size=(6, 6)),), graphs=1)
def test_power_iteration(matrix: Any) -> Any:
    symmetric = (matrix + matrix.T) / 2
    vector = np.ones(len(matrix))
    for _ in range(8):
        vector = symmetric @ vector
        vector /= np.linalg.norm(vector)
    value = vector @ symmetric @ vector
    return value, vector, np.outer(vector, vector)


@program((np.arange(10.0), 3), graphs=1)
def test_moving_average(series: Any, width: int) -> Any:
    total = np.cumsum(np.concatenate([np.zeros(1), series]))
    return (total[width:] - total[:-width]) / width


@program((POINTS,), graphs=1)
def test_standardise_and_correlate(points: Any) -> Any:
    centred = (points - points.mean(axis=0)) / points.std(axis=0)
    return centred.T @ centred / len(points), centred.min(axis=0)


@program((torch.ones(3), np.arange(3.0)), graphs=1)
def test_tensor_and_array_by_turns(t: Any, a: Any) -> Any:
    b = (t * 2).numpy() + a
    u = torch.as_tensor(b) * t
    c = u.numpy()
    c += 1
    return u, c, torch.tensor(a, dtype=torch.float32), torch.tensor(b.sum())

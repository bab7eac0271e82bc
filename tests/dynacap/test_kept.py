"""Entries that are kept on disk: another process begins with them, if all is as it was.

A module that is loaded anew stands for another process: none of its objects is one of before.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dynacap
from dynacap import totals
from dynacap.backends.native.build.build import disk_cache
from dynacap.config import config
from dynacap.kept.entries import KIND
from dynacap.testing import check_same
from tests.dynacap.loaded_anew import loaded_anew

Load = Callable[..., types.ModuleType]
PLAIN = """
import torch
SCALE = 2.0
def grow(x): return x * SCALE
def f(x): return grow(x).relu() + 1
"""


_taken: list[None] = []  # one for each entry that was taken from the disk


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(totals, "add_recalled", lambda: _taken.append(None))
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    with config.patch(keep_captures=True, cache_dir=str(folder)):
        yield


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """``load(source)`` gives the module of a file that is (written and) loaded anew."""
    path, name = tmp_path / "kept_program.py", "kept_program"

    def make(source: str | None = None) -> types.ModuleType:
        if source is not None:
            path.write_text(source)
        module = loaded_anew(path, name)
        dynacap.reset()
        return module

    yield make
    sys.modules.pop(name, None)


def recalled(fn: Any, *args: Any, backend: str = "eager") -> int:
    """How many entries a call took from the disk; its result is eager's."""
    _taken.clear()
    check_same(fn, args, compile=functools.partial(dynacap.compile, backend=backend))
    return len(_taken)


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_later_process_begins_with_the_entry(load: Load, backend: str) -> None:
    x = torch.randn(4)
    assert recalled(load(PLAIN).f, x, backend=backend) == 0
    assert recalled(load().f, x, backend=backend) == 1
    assert recalled(load().f, torch.randn(4), backend=backend) == 1


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("2.0", "3.0"),
        PLAIN.replace("x * SCALE", "x - SCALE"),
        PLAIN.replace("grow(x).relu()", "grow(x).abs()"),
        PLAIN.replace("def grow(x)", "def grow(x, by=1.5)").replace("* SCALE", "* by"),
        PLAIN + "def grow(x): return x / 7\n",
        PLAIN + "import math\nrelu = torch.Tensor.relu\ngrow = lambda x: x / 3\n",
    ],
)
def test_changed_sources(load: Load, changed: str) -> None:
    recalled(load(PLAIN).f, torch.randn(4))
    assert recalled(load(changed).f, torch.randn(4)) == 0
    assert recalled(load().f, torch.randn(4)) == 1


def test_what_is_changed_while_the_program_runs(load: Load) -> None:
    x = torch.randn(4)
    recalled(load(PLAIN).f, x)
    module = load()
    module.SCALE = 5.0
    assert recalled(module.f, x) == 0
    module = load()
    module.grow = lambda x: x * 9
    assert recalled(module.f, x) == 0
    module = load()
    module.grow.__code__ = (lambda x: x - 9).__code__
    assert recalled(module.f, x) == 0
    module = load()
    assert recalled(module.f, x) == 1


DEFAULTS = """
def f(x, *, by=(1, 2)): return x * by[0] + by[1]
def outer(k):
    def inner(x): return x * k
    return inner
"""


def test_defaults_and_closures(load: Load) -> None:
    x = torch.randn(3)
    module = load(DEFAULTS)
    recalled(module.f, x)
    recalled(module.outer(2.5), x)
    module = load()
    module.f.__kwdefaults__["by"] = (3, 4)
    assert recalled(module.f, x) == 0
    assert recalled(load().outer(3.5), x) == 0
    assert recalled(load().outer(2.5), x) == 1


MODEL = """
import torch
from torch import nn
class Block(nn.Module):
    gain = 1.5
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.drop = nn.Dropout(0.0)
    @property
    def twice(self): return self.gain * 2
    def forward(self, x): return self.drop(self.lin(x)).tanh() * self.twice + self.shift(x)
    @staticmethod
    def shift(x): return x.mean()
class Model(nn.Module):
    def __init__(self, layers=2, n=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block(n) for _ in range(layers))
        self.calls = 0
    def forward(self, x, mask=None):
        for block in self.blocks: x = x + block(x)
        self.calls += 1
        return x if mask is None else x * mask
"""


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_modules(load: Load, backend: str) -> None:
    x = torch.randn(2, 4)
    assert recalled(load(MODEL).Model(), x, backend=backend) == 0
    assert recalled(load().Model(), x, backend=backend) == 1
    assert recalled(load().Model(3), x, backend=backend) == 0
    assert recalled(load().Model().eval(), x, backend=backend) == 0
    assert recalled(load().Model(), x.double().float(), torch.ones(4), backend=backend) == 0
    with torch.no_grad():
        assert recalled(load().Model(), x, backend=backend) == 0
    frozen = load().Model()
    frozen.blocks[1].lin.bias.requires_grad_(False)
    assert recalled(frozen, x, backend=backend) == 0
    tied = load().Model()
    tied.blocks[1].lin.weight = tied.blocks[0].lin.weight
    recalled(tied, x, backend=backend)
    assert recalled(load().Model(), x, backend=backend) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m.Block, "gain", 2.5),
        lambda m: setattr(m.Block, "twice", property(lambda self: 7.0)),
        lambda m: setattr(m.Block, "shift", staticmethod(lambda x: x.sum())),
        lambda m: setattr(m.Block, "forward", lambda self, x: self.lin(x)),
        lambda m: setattr(m.Block, "__call__", lambda self, x: x),
        lambda m: setattr(m.Model, "__bases__", (m.Block,)),
    ],
)
def test_changed_classes(load: Load, change: Callable[[Any], None]) -> None:
    x = torch.randn(2, 4)
    recalled(load(MODEL).Model(), x)
    module = load()
    model = module.Model()
    change(module)
    check_same(model, (x,))


def _trained(model: Any, backend: str | None) -> list[torch.Tensor]:
    """Losses and parameters of three steps."""
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run, step = model, opt.step
    if backend is not None:
        run, step = (dynacap.compile(each, backend=backend) for each in (model, opt.step))
    found = []
    for seed in range(3):
        x = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed))
        loss = run(x).square().sum()
        opt.zero_grad()
        loss.backward()
        step()
        found += [loss.detach().clone(), *[p.detach().clone() for p in model.parameters()]]
    return found


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_training(load: Load, backend: str) -> None:
    _taken.clear()
    found = []
    for source, how in ((MODEL, None), (None, backend), (None, backend)):
        module = load(source)
        torch.manual_seed(0)
        found.append(_trained(module.Model(), how))
    assert len(_taken) > 2
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


ALIASED = """
def f(x, y, seen):
    seen.append(len(seen))
    x.add_(1)
    return x * y, seen
def g(a, b): return (a is b, a["x"] + b["x"])
def h(xs):
    total = 0
    for x in xs: total = total + x
    print("summed", len(xs))
    return total * 2
"""


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_aliases_and_effects(load: Load, backend: str) -> None:
    x, y = torch.randn(3), torch.randn(3)
    for times in range(2):
        module = load(ALIASED) if not times else load()
        assert recalled(module.f, x.clone(), y, [1], backend=backend) == times
        z = x.clone()
        recalled(module.f, z, z, [1], backend=backend)
        one, other = {"x": x}, {"x": y}
        assert recalled(module.g, one, other, backend=backend) == times
        assert recalled(module.g, one, one, backend=backend) == times
        assert recalled(module.h, [x, y, x], backend=backend) >= times


CLASSES = """
def made():
    class Made: pass
    return Made
def f(x, one, other): return x * (2 if one is other else 3)
"""


def test_what_were_two_objects_are_two(load: Load) -> None:
    x, module = torch.randn(3), load(CLASSES)
    assert recalled(module.f, x, module.made(), module.made()) == 0
    module = load()
    assert recalled(module.f, x, module.made(), module.made()) == 1
    one = load().made()
    assert recalled(module.f, x, one, one) == 0


HASHED = """
def f(x, names):
    for name in set(names): x = x * 2 + len(name)
    return x
def g(x, name): return x + hash(name) % 7
def h(x): return x * (id(h) % 5)
"""


def test_what_hangs_on_hashes_and_addresses_is_not_kept(load: Load) -> None:
    x = torch.randn(3)
    for times in range(2):
        module = load(HASHED) if not times else load()
        assert recalled(module.f, x, ("a", "bb", "cccc")) == 0
        assert recalled(module.g, x, "name") == 0
        recalled(module.h, x)  # asks for the address when it runs


def _write_nonsense(path: Path) -> None:
    path.write_bytes(b"nonsense")


def test_what_is_damaged_is_captured_anew(load: Load) -> None:
    x = torch.randn(4)
    recalled(load(PLAIN).f, x)
    folder = disk_cache().folder
    (kept,) = folder.glob(f"*.{KIND}")
    kept.write_bytes(kept.read_bytes()[:-40] + bytes(40))
    assert recalled(load().f, x) == 0
    assert recalled(load().f, x) == 1
    disk_cache()._build(kept, _write_nonsense)
    assert recalled(load().f, x) == 0
    assert recalled(load().f, x) == 1
    kept.chmod(0o666)  # others may have written it
    assert recalled(load().f, x) == 0


def test_it_has_to_be_asked_for(load: Load) -> None:
    with config.patch(keep_captures=False):
        recalled(load(PLAIN).f, torch.randn(4))
        assert not list(disk_cache().folder.glob(f"*.{KIND}"))


def test_sizes_that_vary_are_seen_to_vary(load: Load) -> None:
    """The second size is symbolic, as it is where the first was captured."""
    recalled(load(PLAIN).f, torch.randn(4))
    compiled = dynacap.compile(load().f, backend="eager")
    for size in (4, 5, 6, 7):
        x = torch.randn(size)
        assert torch.equal(compiled(x), (x * 2.0).relu() + 1)
    assert len(dynacap.recompiles(compiled)) == 1


PROGRAM = """
import torch, dynacap
def f(x, table):
    for key in table: x = x + table[key]
    return x * 2, "one" in table
compiled = dynacap.compile(f, backend="eager")
print(compiled(torch.ones(2), {"one": 1.0, "two": 2.0})[0].tolist())
print(dynacap.counters()["recalled"])
"""


def test_two_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    told = []
    for seed in ("1", "2"):
        env = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "DYNACAP_KEEP_CAPTURES": "1",
            "DYNACAP_CACHE_DIR": str(config.cache_dir),
        }
        done = subprocess.run(
            [sys.executable, str(script)], env=env, capture_output=True, text=True, check=True
        )
        told.append(done.stdout.split("\n")[:2])
    assert told == [["[8.0, 8.0]", "0"], ["[8.0, 8.0]", "1"]]


DETACHED = """
def f(x, w):
    v = w.detach()
    v[0] = x[1]
    return v
"""


def test_a_gradient_of_what_was_detached_is_not_lost(load: Load) -> None:
    for _ in range(2):
        x = torch.randn(3, 3, requires_grad=True)
        compiled = dynacap.compile(load(DETACHED).f, backend="native")
        compiled(x, torch.randn(3, 3)).sum().backward()
        assert x.grad is not None

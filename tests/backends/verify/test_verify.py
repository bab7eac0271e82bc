"""`verify`: a backend that is wrong is found out, told of, and shown by a small program."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dynacap
from dynacap.config import config
from dynacap.errors import UserError, VerificationFailed
from tests.backends.verify import wrong

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Reproductions go where the test can find them."""
    with config.patch(verify_folder=str(tmp_path)):
        yield tmp_path
    dynacap.reset()


def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = torch.relu(x @ y) + 1
    b = torch.sigmoid(a.sum(1, keepdim=True))
    c = torch.tanh(x * b)
    return (c + a).softmax(-1) * y


def square(n: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(n, n), torch.randn(n, n)


def compiled(function: Callable[..., Any], backend: Any, verify: Any = 1) -> Any:
    return dynacap.compile(function, backend=backend, options={"verify": verify})


def written(folder: Path) -> str:
    """The one program that was written."""
    (path,) = folder.glob("*.py")
    return path.read_text()


def test_a_right_backend_passes() -> None:
    for backend in ("aot_eager", "eager", "interpreter"):
        assert torch.equal(compiled(gate, backend)(*square()), gate(*square()))


def test_a_wrong_backend_raises_and_leaves_a_small_program(folder: Path) -> None:
    with pytest.raises(VerificationFailed, match="differs from eager") as caught:
        compiled(gate, wrong.sigmoid_off)(*square())
    assert str(folder) in str(caught.value)
    text = written(folder)
    assert "1 of 10 operations are left" in text
    assert "torch.sigmoid" in text
    assert "relu" not in text


def test_the_program_fails_by_itself_and_passes_once_the_backend_is_mended(folder: Path) -> None:
    with pytest.raises(VerificationFailed):
        compiled(gate, wrong.sigmoid_off)(*square())
    (path,) = folder.glob("*.py")
    told = run_alone(path)
    assert told.returncode != 0
    assert "compiled is not eager" in told.stderr
    path.write_text(path.read_text().replace("backend=sigmoid_off", "backend='aot_eager'"))
    assert run_alone(path).returncode == 0


def run_alone(path: Path) -> "subprocess.CompletedProcess[str]":
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=root,
        env={"PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_two_operations_that_fail_only_together(folder: Path) -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = torch.tanh(x)
        x = torch.cos(torch.exp(x))
        return torch.tanh(torch.cos(x)) + torch.exp(x)

    with pytest.raises(VerificationFailed):
        compiled(chain, wrong.pair_off)(square()[0])
    assert "2 of 10 operations are left" in written(folder)


def test_healing_goes_on_in_eager(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    healed = compiled(gate, wrong.sigmoid_off, "heal")
    with caplog.at_level(logging.WARNING, "dynacap"):
        for _ in range(2):
            assert torch.equal(healed(*square()), gate(*square()))
    assert caplog.text.count("runs eagerly from now on") == 1
    assert len(list(folder.iterdir())) == 1


def test_the_verdict_stands_where_no_program_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with config.patch(verify_folder=str(tmp_path / "file" / "folder")):
        with pytest.raises(VerificationFailed, match=r"output 0(.|\n)*NotADirectoryError"):
            compiled(gate, wrong.sigmoid_off)(*square())
        healed = compiled(gate, wrong.sigmoid_off, "heal")
        for _ in range(2):
            assert torch.equal(healed(*square()), gate(*square()))
    assert "runs eagerly from now on" in caplog.text


def test_only_the_first_calls_are_checked() -> None:
    runs: list[int] = []

    def counting(graph_module: Any, example_inputs: Any) -> Any:
        def call(*args: Any) -> Any:
            runs.append(1)
            return graph_module.forward(*args)

        return call

    checked = compiled(gate, counting, 2)
    for _ in range(4):
        checked(*square())
    assert len(runs) == 4 + 2


def test_the_environment_asks_for_every_graph(folder: Path) -> None:
    with config.patch(verify=1), pytest.raises(VerificationFailed):
        dynacap.compile(gate, backend=wrong.sigmoid_off)(*square())
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("value", ["maybe", -1, True, "heal:x", 1.5])
def test_what_means_nothing_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match="a number of calls"):
        compiled(gate, "aot_eager", value)


def test_wrong_gradients_are_found(folder: Path) -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return torch.sin(x)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * torch.cos(ctx.saved_tensors[0]) * 1.1

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(torch.sin(x * 2)).sum()

    x = torch.randn(5, requires_grad=True)
    compiled(f, wrong.taking(torch.sin, Wrong.apply))(x.detach())
    with pytest.raises(VerificationFailed, match="gradient 0"):
        compiled(f, wrong.taking(torch.sin, Wrong.apply))(x)
    assert x.grad is None
    assert "1 of 4 operations are left" in written(folder)


def test_nothing_of_the_users_is_touched_before_the_verdict() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y.mul_(2)
        return torch.sigmoid(x) + torch.rand(4)

    base = torch.arange(8.0)
    x, y = base[:4], base[2:6]
    before = base.clone()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    with pytest.raises(VerificationFailed):
        compiled(f, wrong.sigmoid_off)(x, y)
    assert torch.equal(base, before)
    assert torch.equal(torch.get_rng_state(), state)
    healed = compiled(f, wrong.sigmoid_off, "heal")(x, y)
    after = base.clone()
    base.copy_(before)
    torch.set_rng_state(state)
    assert torch.equal(healed, f(x, y))
    assert torch.equal(base, after)


def forgets_to_write(graph_module: Any, example_inputs: Any) -> Any:
    """Computes on copies, so that inputs never change."""
    return lambda *args: graph_module.forward(*(arg.clone() for arg in args))


def test_an_input_that_should_have_changed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1

    with pytest.raises(VerificationFailed, match="input 0"):
        compiled(f, forgets_to_write)(torch.ones(3))


def test_memory_that_should_be_shared() -> None:
    with pytest.raises(VerificationFailed, match="the memory of input 0, compiled in the memory"):
        compiled(lambda x: (x.view(2, 2), x + 1), forgets_to_write)(torch.ones(4))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda out: out.double(), "dtype"),
        (lambda out: out[:1], "shape"),
        (lambda out: out.t().contiguous().t(), "stride"),
        (lambda out: out.detach(), "requires_grad"),
        (lambda out: torch.rand_like(out) * 0 + out, "random state"),
    ],
)
def test_facts_beside_the_numbers(change: Callable[[torch.Tensor], Any], told: str) -> None:
    def backend(graph_module: Any, example_inputs: Any) -> Any:
        return lambda *args: tuple(change(out) for out in graph_module.forward(*args))

    x, y = square()
    with pytest.raises(VerificationFailed, match=told):
        compiled(gate, backend)(x.requires_grad_(), y)


def test_what_is_only_rounded_otherwise_passes() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x * 100, y)

    x, y = square(300)
    assert not torch.allclose(f(x, y), f(x.double(), y.double()).float(), 1.3e-6, 1e-5)
    compiled(f, wrong.more_exact)(x, y)


def test_one_that_raises_where_eager_does_not() -> None:
    def backend(graph_module: Any, example_inputs: Any) -> Any:
        def fail(*args: Any) -> Any:
            raise ArithmeticError("no such kernel")

        return fail

    with pytest.raises(VerificationFailed, match="eager raised nothing, compiled ArithmeticError"):
        compiled(gate, backend)(*square())


def test_inputs_that_share_memory_stay_so() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    base = torch.arange(6.0)
    compiled(f, "aot_eager")(base[:4], base[2:])
    assert torch.equal(base, torch.tensor([1.0, 2, 3, 4, 4, 5]))


def test_dynamic_sizes(folder: Path) -> None:
    healed = dynacap.compile(
        gate, backend=wrong.sigmoid_off, dynamic=True, options={"verify": "heal"}
    )
    assert torch.equal(healed(*square(5)), gate(*square(5)))
    assert "1 of" in written(folder)


def test_several_results_and_stored_inputs(folder: Path) -> None:
    def f(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        values, places = torch.sort(x)
        first, second = torch.chunk(values[index], 2)
        return torch.log(torch.sigmoid(first + places.sum())) + second

    with pytest.raises(VerificationFailed):
        compiled(f, wrong.sigmoid_off)(torch.randn(6), torch.tensor([0, 3, 2, 1]))
    assert "1 of " in written(folder)


@pytest.mark.parametrize("view", [False, True])
def test_inputs_that_were_computed(folder: Path, view: bool) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.mul_(3)
        return torch.sigmoid(x).sum()

    def results(backend: Any, verify: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.arange(12.0, requires_grad=True)
        y = (x * 0.1).view(3, 4).t()[1:] if view else (x * 0.1).view(3, 4)
        out = compiled(f, backend, verify)(y)
        return out.detach(), torch.autograd.grad(out, x)[0]

    expected = results("eager", 0)
    for backend, verify in (("aot_eager", 1), (wrong.sigmoid_off, "heal")):
        torch.testing.assert_close(results(backend, verify), expected)
    assert "1 of 3 operations are left" in written(folder)

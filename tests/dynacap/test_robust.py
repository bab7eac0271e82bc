"""Things go wrong in user code, backends, guards and threads: nothing is lost or made worse."""

import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap.errors import BackendCompilerFailed

ENGINE: Any = dynacap
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    ENGINE.reset()


def compiled(function: Any, **options: Any) -> Any:
    return ENGINE.compile(function, **{"backend": "eager", **options})


class Net(nn.Module):
    """A small module that pickle can find."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.note = ["kept"]

    def forward(self, x: Tensor) -> Any:
        return self.layer(x).sigmoid()


class Fussy:
    """Its `__eq__` raises when told to."""

    def __init__(self) -> None:
        self.bad = False

    def __eq__(self, other: object) -> bool:
        if self.bad:
            raise ArithmeticError("no comparing")
        return self is other

    def __hash__(self) -> int:
        return 1


class Touchy:
    """A descriptor that raises when told to."""

    bad = False

    def __get__(self, instance: Any, owner: type | None = None) -> int:
        if Touchy.bad:
            raise LookupError("touched")
        return 3


class HasTouchy:
    value = Touchy()


def test_user_exception_is_the_same_object() -> None:
    error = ValueError("mine")

    def function(x: Tensor) -> Tensor:
        y = x + 1
        if y.shape[0] == 2:
            raise error
        return y

    target = compiled(function)
    for _ in range(3):
        with pytest.raises(ValueError, match="mine") as caught:
            target(torch.ones(2))
        assert caught.value is error
        assert target(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_traceback_names_the_users_function_and_line() -> None:
    def inner(x: Tensor) -> Tensor:
        raise KeyError("here")

    def outer(x: Tensor) -> Tensor:
        return inner(x + 1)

    with pytest.raises(KeyError) as caught:
        compiled(outer)(torch.ones(2))
    names = [entry.name for entry in caught.traceback]
    assert names.index("outer") < names.index("inner")
    lines = {entry.name: entry.lineno for entry in caught.traceback}
    assert lines["inner"] == inner.__code__.co_firstlineno
    assert lines["outer"] == outer.__code__.co_firstlineno


def test_error_of_an_operation_at_run_time_leaves_as_in_eager() -> None:
    def function(x: Tensor, at: Tensor) -> Tensor:
        return x[at] * 2

    target = compiled(function)
    assert target(torch.arange(3.0), torch.tensor([2])).tolist() == [4.0]
    with pytest.raises(IndexError, match="out of"):
        target(torch.arange(3.0), torch.tensor([7]))
    assert target(torch.arange(3.0), torch.tensor([1])).tolist() == [2.0]


def test_exception_in_a_users_descriptor() -> None:
    thing = HasTouchy()

    def function(x: Tensor) -> Tensor:
        return x * thing.value

    target = compiled(function)
    try:
        assert target(torch.ones(1)).item() == 3
        Touchy.bad = True
        with pytest.raises(LookupError, match="touched"):
            target(torch.ones(1))
    finally:
        Touchy.bad = False
    assert target(torch.ones(1)).item() == 3


def test_eq_that_raises_does_not_leave_a_guard() -> None:
    fussy = Fussy()
    table = {fussy: 2.0}

    def function(x: Tensor, key: Any) -> Tensor:
        return x * table[key]

    target = compiled(function)
    assert target(torch.ones(1), fussy).item() == 2
    fussy.bad = True
    assert target(torch.ones(1), fussy).item() == function(torch.ones(1), fussy).item()


def test_backend_that_raises_names_itself() -> None:
    def bad_backend(gm: Any, example_inputs: Any) -> Any:
        raise RuntimeError("backend is tired")

    with pytest.raises(BackendCompilerFailed, match="bad_backend") as caught:
        compiled(lambda x: x + 1, backend=bad_backend)(torch.ones(2))
    assert "backend is tired" in str(caught.value)


def test_backend_that_raises_can_be_passed_over() -> None:
    def bad_backend(gm: Any, example_inputs: Any) -> Any:
        raise RuntimeError("backend is tired")

    with ENGINE.config.patch(suppress_backend_errors=True):
        target = compiled(lambda x: x + 1, backend=bad_backend)
        assert target(torch.ones(2)).tolist() == [2.0, 2.0]


def test_exception_in_the_compiled_graph_leaves_unchanged() -> None:
    error = OSError("at run time")

    def backend(gm: Any, example_inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            raise error

        return run

    with pytest.raises(OSError, match="at run time") as caught:
        compiled(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert caught.value is error


def test_keyboard_interrupt_during_capture() -> None:
    interrupted: list[bool] = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return gm

    target = compiled(lambda x: x + 1, backend=backend)
    with pytest.raises(KeyboardInterrupt):
        target(torch.ones(2))
    assert not ENGINE.is_compiling()
    assert target(torch.ones(2)).tolist() == [2.0, 2.0]


def test_recursion_error_is_the_programs_own() -> None:
    def forever(x: Tensor) -> Any:
        return forever(x + 1)

    with pytest.raises(RecursionError):
        compiled(forever)(torch.ones(1))
    assert sys.getrecursionlimit() >= 1000


def test_compiled_function_that_calls_itself_compiled() -> None:
    def factorial(x: Tensor, n: int) -> Any:
        return x if n == 0 else target(x, n - 1) * n

    target = compiled(factorial)
    assert target(torch.ones(1), 5).item() == 120


def run_in_threads(work: Callable[[int], Any], count: int) -> list[Any]:
    """Run `work` in that many threads that start at the same moment."""
    barrier = threading.Barrier(count)

    def one(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_threads_call_and_compile_at_the_same_time() -> None:
    net = Net()
    target = compiled(net)
    inputs = [torch.full((n % 4 + 1, 3), float(n)) for n in range(8)]

    def work(number: int) -> list[Tensor]:
        return [target(inputs[number]).detach() for _ in range(20)]

    for number, results in enumerate(run_in_threads(work, 8)):
        expected = net.layer(inputs[number]).sigmoid().detach()
        assert all(torch.equal(result, expected) for result in results)


def test_threads_with_functions_of_their_own() -> None:
    def work(number: int) -> float:
        def function(x: Tensor) -> Tensor:
            total = x
            for _ in range(number):
                total = total + number
            return total

        target = compiled(function)
        return float(sum(target(torch.zeros(1)).item() for _ in range(5)))

    assert run_in_threads(work, 6) == [5.0 * n * n for n in range(6)]


def test_grad_mode_belongs_to_the_thread() -> None:
    weight = torch.ones(1, requires_grad=True)
    target = compiled(lambda x: x * weight)

    def work(number: int) -> bool:
        with torch.set_grad_enabled(number % 2 == 0):
            return all(target(torch.ones(1)).requires_grad == (number % 2 == 0) for _ in range(20))

    assert all(run_in_threads(work, 4))


@pytest.mark.parametrize("called_before", [False, True])
def test_compiled_module_can_be_deep_copied(called_before: bool) -> None:
    target = compiled(Net())
    x = torch.ones(2, 3)
    if called_before:
        target(x)
    twin = copy.deepcopy(target)
    assert isinstance(twin, Net)
    assert torch.equal(twin(x), target(x))
    with torch.no_grad():
        twin.layer.weight.zero_()
        twin.layer.bias.zero_()
    assert twin(x).sum().item() == 3
    assert target(x).shape == (2, 3)
    assert not torch.equal(twin.layer.weight, target.layer.weight)


@pytest.mark.parametrize("called_before", [False, True])
def test_compiled_module_can_be_pickled(called_before: bool) -> None:
    target = compiled(Net())
    x = torch.ones(2, 3)
    if called_before:
        target(x)
    twin = pickle.loads(pickle.dumps(target))
    assert isinstance(twin, Net)
    assert torch.equal(twin(x), target(x))
    assert list(twin.state_dict()) == list(Net().state_dict())


def test_compiled_module_stays_what_it_was() -> None:
    net = Net()
    keys, text = list(net.state_dict()), repr(net)
    target = compiled(net)
    assert isinstance(target, Net)
    assert list(target.state_dict()) == keys
    assert repr(target) == text
    assert target.note is net.note
    target.train(False)
    assert not target.layer.training
    target.extra = 5  # type: ignore[assignment]
    assert target.extra == 5


def test_optimizer_made_before_and_after_compiling() -> None:
    net = Net()
    before = torch.optim.SGD(net.parameters(), lr=0.1)
    target = compiled(net)
    after = torch.optim.SGD(target.parameters(), lr=0.1)
    start = net.layer.weight.detach().clone()
    for optimizer in (before, after):
        target(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(start, target.layer.weight)
    assert torch.equal(net.layer.weight, target.layer.weight)


def test_internal_error_runs_the_program_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of dynacap's own never reaches the user, unless asked for."""

    def faulty(gm: Any, example_inputs: Any) -> Any:
        raise AssertionError("not the user's fault")

    with ENGINE.config.patch(suppress_errors=True, raise_internal_errors=False):
        target = compiled(lambda x: x * 2, backend=faulty)
        assert target(torch.ones(1)).item() == 2

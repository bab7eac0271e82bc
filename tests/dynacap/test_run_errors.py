"""Graphs that raise at run time: the program's own handlers catch, and nothing happens twice."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.backends.before import Before
from dynacap.fxlite import GraphModule
from dynacap.testing import check_same, program

GOOD = torch.tensor([2, 0])
BAD = torch.tensor([2, 9])
X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


@program((X, GOOD), (X, BAD), (X, GOOD), graphs=1)
def test_caught_by_the_function_itself(x: Tensor, at: Tensor) -> Any:
    try:
        return x[at] * 2
    except IndexError:
        return x - 1


@program((X, GOOD), (X, BAD), breaks=None)
def test_caught_in_a_later_piece(x: Tensor, at: Tensor) -> Any:
    x = x + 1
    print("piece")
    try:
        y = x[at] * 2
    except IndexError as error:
        y = x * 3
        print(type(error).__name__, error.__context__)
    return y + 1


def pick(x: Tensor, at: Tensor) -> Tensor:
    y = x * 2
    print("picking")
    return y[at] + 1


@program((X, GOOD), (X, BAD), (X, BAD), breaks=None)
def test_caught_by_a_waiting_frame(x: Tensor, at: Tensor) -> Any:
    try:
        y = pick(x + 1, at)
    except IndexError:
        y = x
    return y * 2


@program((X, BAD), breaks=None)
def test_effects_before_the_error_are_there_once(x: Tensor, at: Tensor) -> Any:
    log: list[Any] = []
    try:
        log.append("before")
        y = x.index_select(0, at)
        log.append("after")
    except (IndexError, RuntimeError):
        y = x
    return y, log


@program((X, GOOD), (X, BAD), breaks=None)
def test_in_place_before_what_raises(x: Tensor, at: Tensor) -> Any:
    x.add_(1)
    try:
        y = x[at]
    except IndexError:
        y = x * 100
    x.mul_(2)
    return y


@program((X, GOOD, []), (X, BAD, []), graphs=1)
def test_effects_and_a_change_before_an_index_out_of_range(
    x: Tensor, at: Tensor, log: list[str]
) -> Any:
    log.append("before")
    x.add_(1)
    y = x[at]
    log.append("after")
    return y


@program((X, torch.eye(2), []), (X, -torch.eye(2), []), breaks=1)
def test_effects_and_a_change_before_an_error_that_leaves(
    x: Tensor, matrix: Tensor, log: list[str]
) -> Any:
    log.append("before")
    x.add_(1)
    y = torch.linalg.cholesky(matrix)
    log.append("after")
    return y


@program((X, GOOD), (X, BAD), graphs=1)
def test_a_change_before_an_error_that_leaves(x: Tensor, at: Tensor) -> Any:
    log = ["before"]
    x.add_(1)
    return x[at], log


@program((X, GOOD), (X, BAD), graphs=1)
def test_in_place_after_what_raises(x: Tensor, at: Tensor) -> Any:
    try:
        y = x[at]
    except IndexError:
        y = x * 100
    x.add_(1)
    return y


@program((X, GOOD), (X, BAD), breaks=None)
def test_second_lookup_after_a_change(x: Tensor, at: Tensor) -> Any:
    try:
        y = x[at]
    except IndexError:
        y = x[:2] * 100
    x.add_(1)
    return y + x[torch.tensor([0, 1])]


@program((X, GOOD), (X, BAD), breaks=None)
def test_random_numbers_are_drawn_once(x: Tensor, at: Tensor) -> Any:
    noise = torch.rand(3)
    try:
        y = (x + noise)[at]
    except IndexError:
        y = torch.rand(2)
    return y, torch.rand(1)


@program((X, BAD), breaks=None)
def test_grad_mode_after_an_error(x: Tensor, at: Tensor) -> Any:
    try:
        with torch.no_grad():
            y = x[at]
    except IndexError:
        y = x
    return y, torch.is_grad_enabled()


@program((X, BAD), breaks=None)
def test_inference_mode_after_an_error(x: Tensor, at: Tensor) -> Any:
    try:
        with torch.inference_mode():
            y = x[at]
    except IndexError:
        y = x
    return y, torch.is_inference_mode_enabled()


@pytest.mark.parametrize("changes", [False, True])
def test_torch_state_after_an_error_that_leaves(changes: bool) -> None:
    def function(x: Tensor, at: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            if changes:
                x.add_(1)
            return x[at]

    compiled = dynacap.compile(function)
    compiled(X.clone(), GOOD)
    with pytest.raises(IndexError):
        compiled(X.clone(), BAD)
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0


@program((X + 1,), (-X,), (X * torch.nan,), (X + 2,), graphs=1)
def test_branches_that_only_raise(x: Tensor) -> Tensor:
    if (x < 0).any():
        raise AssertionError(f"negative: {x.min().item()}")
    y = x.sqrt()
    if torch.isnan(y).any():
        raise ValueError("not a number", float(y.sum()))
    return y + 1


@program((X + 1, []), (-X, []), (X + 2, []), graphs=1)
def test_branch_that_only_raises_after_effects(x: Tensor, log: list[str]) -> Tensor:
    log.append("before")
    if not (x > 0).all():
        raise ValueError(log)
    log.append("after")
    return x * 2


@program((X + 1,), (-X,), breaks=None)
def test_branch_that_raises_to_a_handler(x: Tensor) -> Any:
    try:
        if x.sum() < 0:
            raise KeyError("negative")
    except KeyError as error:
        return x * 2, str(error)
    return x


@program((X + 1,), (-X - 2,), breaks=1)
def test_branch_that_raises_after_a_change(x: Tensor) -> Tensor:
    x.add_(1)
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@program((X,), breaks=None)
def test_branch_that_raises_on_more_than_one_number(x: Tensor) -> Tensor:
    if x > 0:
        raise ValueError("positive")
    return x


@program((X,), (torch.full((3,), torch.nan),))
def test_distributions_check_their_arguments(x: Tensor) -> Any:
    normal = torch.distributions.Normal(x, x + 1)
    return normal.log_prob(x * 2), normal.rsample()


@program((torch.ones(4),), breaks=None)
def test_overlapping_output(x: Tensor) -> Any:
    how = "direct"
    try:
        torch.mul(x[1:], 3, out=x[:-1])
    except RuntimeError:
        how = "copied"
        x[:-1] = x[1:].clone() * 3
    return x + 1, how


def failing_backend(error: Exception) -> Callable[..., Any]:
    def backend(gm: GraphModule, example_inputs: Any) -> Any:
        def run_it(*args: Any) -> Any:
            raise error

        return run_it

    return backend


def test_error_of_the_backends_code_is_raised_as_it_is() -> None:
    error = OSError("at run time")
    compiled = dynacap.compile(lambda x: x + 1, backend=failing_backend(error))
    with pytest.raises(OSError, match="at run time") as caught:
        compiled(X)
    assert caught.value is error


def test_error_of_the_backends_code_can_be_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with dynacap.config.patch(suppress_backend_errors=True):
        compiled = dynacap.compile(lambda x: x + 1, backend=failing_backend(OSError("tired")))
        for _ in range(3):
            assert torch.equal(compiled(X), X + 1)
    assert [record.message.count("tired") for record in caplog.records] == [1]


def test_lack_of_memory_is_not_run_again_after_a_change() -> None:
    runs: list[int] = []

    def backend(gm: GraphModule, example_inputs: Any) -> Any:
        def run_it(*args: Any) -> Any:
            runs.append(1)
            gm(*args)
            raise MemoryError

        return run_it

    def function(x: Tensor) -> Tensor:
        return x.add_(1)

    x = X.clone()
    with pytest.raises(MemoryError):
        dynacap.compile(function, backend=backend)(x)
    assert torch.equal(x, X + 1)
    assert runs == [1]


def test_interrupt_in_a_graph_leaves_the_state() -> None:
    def backend(gm: GraphModule, example_inputs: Any) -> Any:
        def run_it(*args: Any) -> Any:
            gm(*args)
            torch._C._set_grad_enabled(False)
            raise KeyboardInterrupt

        return run_it

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x + 1

    with pytest.raises(KeyboardInterrupt):
        dynacap.compile(function, backend=backend)(X)
    assert torch.is_grad_enabled()


ZEROS = torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize(
    "divide",
    [
        lambda n: n // n,
        lambda n: n % n,
        lambda n: torch.fmod(n, 0),
        lambda n: torch.div(n, n, rounding_mode="trunc"),
        lambda n: n**-1,
        lambda n: n.floor_divide_(n),
    ],
)
def test_a_division_by_zero_behind_a_change(divide: Callable[[Tensor], Any], backend: str) -> None:
    def function(x: Tensor, n: Tensor) -> Any:
        x.mul_(2)
        n.add_(1)
        return divide(n - 1)

    calls = [(X + 1, ZEROS), (X + 2, ZEROS)]
    check_same(function, *calls, compile=lambda f: dynacap.compile(f, backend=backend))


@program((X + 1, ZEROS), (X + 1, ZEROS + 2), breaks=None)
def test_a_division_by_zero_that_is_caught(x: Tensor, n: Tensor) -> Any:
    try:
        x.mul_(2)
        x.add_(5 // n)
    except RuntimeError as error:
        return x, str(error)
    return x


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("change", [lambda x: x.mul_(2), lambda x: x.copy_(torch.rand(3))])
def test_an_error_that_nobody_foresaw_behind_a_change(change: Any, backend: str) -> None:
    def function(x: Tensor) -> Tensor:
        change(x)
        return torch.full_like(x, 1e300)

    check_same(function, (X + 1,), compile=lambda f: dynacap.compile(f, backend=backend))


@program((X + 1,))
def test_an_error_that_nobody_foresaw_behind_random_numbers(x: Tensor) -> Tensor:
    return torch.full_like(torch.rand(3) * x, 1e300)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("change", [lambda x: x.mul_(2), lambda x: x.copy_(torch.rand(3))])
def test_an_error_that_nobody_foresaw_meets_handlers_around_a_break(
    change: Any, backend: str
) -> None:
    def function(x: Tensor) -> Any:
        log: list[Any] = []
        try:
            with torch.no_grad():
                print("a break")
                change(x)
                return torch.full_like(x, 1e300)
        except RuntimeError as error:
            log.append(str(error))
        finally:
            log.append(torch.is_grad_enabled())
        return x + 1, log

    check_same(function, (X + 1,), (X,), compile=lambda f: dynacap.compile(f, backend=backend))


@program((X + 1,), breaks=None)
def test_an_error_that_nobody_foresaw_in_a_callee_behind_a_break(x: Tensor) -> Any:
    def inner(y: Tensor) -> Tensor:
        print("a break")
        y.mul_(2)
        return torch.full_like(y, 1e300)

    try:
        return inner(x)
    except RuntimeError as error:
        return x + 1, str(error)


def test_native_keeps_what_it_changes_only_where_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[Before] = []
    keep = Before.keep_memory
    monkeypatch.setattr(Before, "keep_memory", lambda self: (kept.append(self), keep(self)))

    def function(x: Tensor, number: float) -> Any:
        try:
            x.mul_(2)
            return torch.full_like(x, number)
        except RuntimeError:
            return x + 1

    run = dynacap.compile(function, backend="native", dynamic=False)
    for number, times in ((1.0, 0), (1.0, 0), (1e300, 1)):
        x = X.clone()
        assert torch.equal(run(x, number), function(X.clone(), number))
        assert torch.equal(x, X * 2)
        assert len(kept) == times


def _unforeseen(x: Tensor) -> Tensor:
    """What no fake tensor refuses, and a real one does."""
    return torch.full_like(x, 1e300)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mul_(2),
        lambda x: x.copy_(torch.rand(3)),
        lambda x: x[1:].add_(1),
        lambda x: torch.add(x, 1, out=x),
    ],
)
def test_an_error_that_nobody_foresaw_meets_a_handler_of_the_region(
    change: Any, backend: str
) -> None:
    def function(x: Tensor) -> Any:
        log: list[Any] = []
        n = 1
        try:
            n = 2
            change(x)
            n = 3
            return _unforeseen(x)
        except RuntimeError as error:
            log.append(str(error))
        finally:
            log.append(n)
        return x + 1, log, x._version

    check_same(function, (X + 1,), (X,), compile=lambda f: dynacap.compile(f, backend=backend))


@program((X.clone().requires_grad_(),), breaks=None)
def test_an_error_that_nobody_foresaw_behind_a_change_with_a_history(leaf: Tensor) -> Any:
    x = leaf * 1
    print("a break")
    try:
        x.mul_(2)
        return _unforeseen(x)
    except RuntimeError as error:
        return x * 1, str(error)


@program((X + 1,), breaks=None)
def test_an_error_behind_a_try_that_begins_before_a_break(x: Tensor) -> Any:
    try:
        print("a break")
        x.mul_(2)
    except RuntimeError:
        return "not this one"
    return _unforeseen(x)


@program((X + 1,), breaks=None)
def test_a_division_behind_a_try_that_begins_before_a_break(x: Tensor) -> Any:
    try:
        print("a break")
        x.mul_(2)
    except RuntimeError:
        return "not this one"
    return ZEROS // ZEROS


@program((X + 1,), breaks=None)
def test_an_error_that_nobody_foresaw_meets_a_handler_that_reads_locals(x: Tensor) -> Any:
    try:
        print("a break")
        n = 1
        x.mul_(2)
        n = 2
        return _unforeseen(x)
    except RuntimeError as error:
        return n, x + 1, str(error)


@program((X + 1,), breaks=None)
def test_a_context_manager_sees_an_error_that_nobody_foresaw(x: Tensor) -> Any:
    seen: list[Any] = []

    @contextlib.contextmanager
    def noting() -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            seen.append((str(error), x.clone()))

    with noting():
        x.mul_(2)
        _unforeseen(x)
    return x, seen


@program((X.clone().requires_grad_(),), breaks=None)
def test_an_error_that_nobody_foresaw_behind_a_change_of_a_parameter(x: Tensor) -> Any:
    try:
        with torch.no_grad():
            x.mul_(2)
        return _unforeseen(x)
    except RuntimeError as error:
        return x * 1, str(error)


@program(
    (X, torch.tensor(0.5), torch.ones(2), torch.ones(2)),
    (X, torch.tensor(2.0), torch.ones(2), torch.ones(0)),
    breaks=None,
)
def test_an_error_that_nobody_foresaw_behind_another_shape(
    x: Tensor, at: Tensor, w: Tensor, out: Tensor
) -> Any:
    try:
        w.add_(1)
        w.unsqueeze_(0)
        return torch.quantile(x, at), w
    except RuntimeError:
        pass
    try:
        torch.add(w[0], 1, out=out)
        return torch.quantile(x, at), out
    except RuntimeError:
        return w, out

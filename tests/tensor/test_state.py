"""Grad mode, inference mode, autocast: in the graph at run time, undone after capture."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import dynacap
from dynacap.testing import Scenario, call, check_same, program, scenario

X = torch.arange(12.0).reshape(3, 4) - 5
LEAF = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()


@program((LEAF,))
def test_no_grad_and_enable_grad(x: Tensor) -> Any:
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        inside = torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        c = x * 4
    return a, b, c, inside, torch.is_grad_enabled(), [t.requires_grad for t in (a, b, c)]


@torch.no_grad()
def decorated(x: Tensor) -> Tensor:
    return x * 2


@program((LEAF,))
def test_no_grad_as_a_decorator(x: Tensor) -> Any:
    y = decorated(x)
    return y, y.requires_grad, x + 1


@program((LEAF,))
def test_inference_mode(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x * 2
        inside = (torch.is_inference_mode_enabled(), y.is_inference())
    return inside, torch.is_inference_mode_enabled(), x * 3, y.requires_grad


@program((LEAF, torch.ones(4)), (LEAF[:2].detach().requires_grad_(), torch.zeros(4)))
def test_what_inference_mode_sees_first_is_from_outside(x: Tensor, w: Tensor) -> Any:
    with torch.inference_mode():
        y = x[1:] + w
    w.add_(1)
    return y, (x * x * w).sum()


@program((X.numpy(),))
def test_what_inference_mode_sees_first_is_an_array(a: Any) -> Any:
    with torch.inference_mode():
        b = a + 1
    a += b
    return a, b


@program((LEAF,))
def test_inference_mode_ends_where_a_backend_gives_up(x: Tensor) -> Any:
    y = x * 1
    with torch.inference_mode():
        z = x[1:] + y[1:]
    return z, (x * x).sum()


@program((X, LEAF))
def test_autocast(x: Tensor, w: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w.T
        with torch.autocast("cpu", enabled=False):
            z = x @ w.T
        inside = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return y, z, inside, torch.is_autocast_enabled("cpu"), x @ w.T


@program((LEAF,))
def test_mode_set_for_good(x: Tensor) -> Any:
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y.requires_grad, (x * 3).requires_grad


@scenario(breaks=None)
def test_mode_that_stays_set() -> Scenario:
    def f(x: Tensor) -> Any:
        torch.set_grad_enabled(False)
        return x * 2

    def after(i: int, result: Any) -> Any:
        seen = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        return seen

    leaf = LEAF.detach().clone().requires_grad_()
    return Scenario(f, [call(leaf), call(leaf)], after=after)


@scenario(breaks=None)
def test_mode_alone_in_a_region() -> Scenario:
    def f(x: Tensor) -> Any:
        torch.set_grad_enabled(False)
        torch._dynamo.graph_break()
        y = x * 2
        torch._dynamo.graph_break()
        torch.set_grad_enabled(True)
        return y, x * 3

    leaf = LEAF.detach().clone().requires_grad_()
    return Scenario(f, [call(leaf), call(leaf)])


@program((LEAF,), breaks=1)
def test_break_inside_no_grad(x: Tensor) -> Any:
    with torch.no_grad():
        y = x * 2
        print(torch.is_grad_enabled())
        z = y + x
    return z, z.requires_grad, x * 2


@program((LEAF,), breaks=1)
def test_break_inside_autocast(x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        print(torch.is_autocast_enabled("cpu"))
        z = x @ x.T
    return y, z, x @ x.T


@program((X,), breaks=None)
def test_exception_inside_no_grad(x: Tensor) -> Any:
    try:
        with torch.no_grad():
            x * 2
            raise ValueError("on purpose")
    except ValueError:
        return torch.is_grad_enabled(), x + 1


@scenario(breaks=None)
def test_graph_that_raises_inside_no_grad() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        with torch.no_grad():
            return x.clone().add_(1)[at]

    def after(i: int, result: Any) -> Any:
        return torch.is_grad_enabled()

    return Scenario(f, [call(X, torch.tensor([0])), call(X, torch.tensor([9]))], after=after)


@pytest.mark.parametrize("mode", [torch.no_grad, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_break_inside_with_a_backend_that_keeps_no_state(mode: Any) -> None:
    def f(x: Tensor) -> Any:
        with mode():
            y = x @ x.T
            dynacap.graph_break()
            z = x @ x.T
        return y.dtype, z.dtype, y.requires_grad, z.requires_grad, (x * 2).requires_grad

    assert dynacap.compile(f, backend="aot_eager")(LEAF) == f(LEAF)
    assert torch.is_grad_enabled()
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0


def test_error_with_a_backend_that_keeps_no_state() -> None:
    def f(x: Tensor, at: Tensor) -> Any:
        with torch.no_grad():
            return x.clone().add_(1)[at]

    compiled = dynacap.compile(f, backend="aot_eager")
    compiled(X, torch.tensor([0]))
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([9]))
    assert torch.is_grad_enabled()


def test_state_alone_is_nothing_for_a_backend() -> None:
    called = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        called.append(sum(node.op.startswith("call_") for node in gm.graph.nodes))
        return gm

    def f(x: Tensor) -> Any:
        torch.set_grad_enabled(False)
        dynacap.graph_break()
        y = x * 2
        dynacap.graph_break()
        torch.set_grad_enabled(True)
        return y

    compiled = dynacap.compile(f, backend=backend)
    assert not compiled(LEAF).requires_grad
    assert not compiled(LEAF).requires_grad
    assert torch.is_grad_enabled()
    assert called == [1]


@pytest.mark.parametrize("enabled", [True, False])
def test_entries_for_either_grad_mode(enabled: bool) -> None:
    def f(x: Tensor) -> Any:
        return x * 2 if torch.is_grad_enabled() else x * 3

    with torch.set_grad_enabled(enabled):
        check_same(f, (LEAF,), breaks=0)


def test_capture_leaves_torchs_state_alone() -> None:
    seen = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
        return gm

    def f(x: Tensor) -> Any:
        torch.set_grad_enabled(False)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x.T

    compiled = dynacap.compile(f, backend=backend)
    try:
        compiled(X)
    finally:
        torch.set_grad_enabled(True)
    assert seen == [(True, False)]


SETTERS = {
    "default dtype": lambda: torch.set_default_dtype(torch.float32),
    "seed": lambda: torch.manual_seed(3),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads()),
    "deterministic": lambda: torch.use_deterministic_algorithms(False),
}


@pytest.mark.parametrize("setter", SETTERS.values(), ids=SETTERS.keys())
def test_process_settings_break(setter: Any) -> None:
    def f(x: Tensor) -> Any:
        y = x + 1
        setter()
        return y + torch.rand(3, 4)

    outcome = check_same(f, (X,))
    assert outcome.counters["breaks"] > 0


def test_answers_while_capturing() -> None:
    def f(x: Tensor) -> Any:
        compiling = torch.compiler.is_compiling()
        return x + 1, compiling, torch.jit.is_scripting(), torch.jit.is_tracing()

    compiled = dynacap.compile(f, backend="eager", fullgraph=True)
    assert compiled(X)[1:] == (True, False, False)
    assert f(X)[1] is False


@scenario(breaks=0)
def test_random_numbers_are_drawn_again_after_an_error() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        noise = torch.nn.functional.dropout(x, 0.5) + torch.rand(4)
        try:
            return noise[at] * 2
        except IndexError:
            return noise

    return Scenario(f, [call(X, torch.tensor([0])), call(X, torch.tensor([9]))])


@scenario(breaks=0)
def test_writes_to_own_memory_are_made_again_after_an_error() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        y = x * 2
        y[0] += 1
        y.view(-1).mul_(3)
        try:
            return y[at]
        except IndexError:
            return y

    return Scenario(f, [call(X, torch.tensor([0])), call(X, torch.tensor([9]))])


@scenario(breaks=None)
def test_writes_to_arguments_are_not_made_twice() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        y = x.view(-1)
        y.mul_(3)
        try:
            return y[at]
        except IndexError:
            return x

    return Scenario(f, [call(X.clone(), torch.tensor([0])), call(X.clone(), torch.tensor([90]))])


class Seen:
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def see(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class SeenByDispatch(Seen, TorchDispatchMode):
    __torch_dispatch__ = Seen.see


class SeenByFunction(Seen, TorchFunctionMode):
    __torch_function__ = Seen.see


@pytest.mark.parametrize("mode", [SeenByDispatch, SeenByFunction])
def test_a_mode_sees_the_program_and_nothing_else(mode: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return (x @ x.T).relu().view(-1)

    compiled = dynacap.compile(function, backend="eager")
    for _ in range(3):
        with mode() as plain:
            function(X)
        with mode() as captured:
            compiled(X)
        assert captured.seen == plain.seen


@program((X,), breaks=1)
def test_autocast_set_by_keywords_is_put_back(x: Tensor) -> Any:
    before = torch.is_autocast_enabled("cpu")
    torch.set_autocast_enabled(enabled=True, device_type="cpu")
    y = x @ x.T
    print("a break")
    torch.set_autocast_enabled(device_type="cpu", enabled=before)
    return y, before, torch.is_autocast_enabled("cpu")

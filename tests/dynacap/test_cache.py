"""Entries, limits and what is told of them; threads; what cannot be captured."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap import log, misses
from dynacap.capture import Attempts
from dynacap.codegen import Emitter, emit
from dynacap.errors import GraphBreak
from dynacap.fxlite import GraphModule
from dynacap.guards.process_state import ProcessState
from dynacap.values.container import SetValue
from dynacap.values.tensor.family import TensorFamily

X = torch.arange(3.0)
Backend = Callable[[GraphModule, Any], Any]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


class Counting:
    """The eager backend, counting its calls."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Any) -> Any:
        self.graphs.append(gm)
        return gm


def doubled(x: Tensor) -> Tensor:
    return x * 2


def scaled(x: Tensor, k: int) -> Tensor:
    return x * k + 1


def test_entries_belong_to_the_compile_call() -> None:
    first, second = Counting(), Counting()
    one = dynacap.compile(scaled, backend=first)
    two = dynacap.compile(scaled, backend=second)
    one(X, 2)
    two(X, 2)
    one(X, 2)
    two(X, 3)
    assert (len(first.graphs), len(second.graphs)) == (1, 2)


def test_closures_of_one_function_share_no_limit() -> None:
    backend = Counting()

    def make(k: int) -> Any:
        return dynacap.compile(lambda x: x * k, backend=backend)

    for k in range(20):
        assert torch.equal(make(k)(X), X * k)
    assert len(backend.graphs) == 20


def test_the_entry_that_ran_last_is_tried_first() -> None:
    compiled = dynacap.compile(scaled)
    with dynacap.config.patch(specialize_int=True):
        for k in (1, 2, 3, 1):
            compiled(X, k)
    entries = compiled.table.entries
    assert [entry.hits for entry in entries] == [1, 0, 0]


def test_recompile_limit_warns_once_and_names_the_guard(caplog: pytest.LogCaptureFixture) -> None:
    backend = Counting()
    compiled = dynacap.compile(scaled, backend=backend)
    with dynacap.config.patch(recompile_limit=4, specialize_int=True):
        for k in range(12):
            assert torch.equal(compiled(X, k), scaled(X, k))
        assert torch.equal(compiled(X, 3), scaled(X, 3))
    assert len(backend.graphs) == 4
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    text = caplog.records[0].message
    for part in ("scaled", "recompile_limit (4)", "k: seen", "3", "what to do", "test_cache.py"):
        assert part in text


def test_no_entry_is_asked_why_once_the_limit_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = dynacap.compile(scaled)
    with dynacap.config.patch(recompile_limit=2, specialize_int=True):
        for k in range(4):
            compiled(X, k)
        asked: list[Any] = []
        monkeypatch.setattr(misses.Recompiles, "note", lambda *given: asked.append(given))
        monkeypatch.setattr(misses, "drop_forgetful", lambda *given: asked.append(given))
        assert torch.equal(compiled(X, 5), scaled(X, 5))
    assert not asked


def test_a_loop_is_left_alone_by_what_it_does_in_its_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dynacap.executor.machine.MAX_WORK", 2_000)

    def hash_of(k: int) -> int:
        return (k * 7 + 1) % 11 + (k * 5 + 3) % 13 + (k * 3 + 5) % 17 + (k * 2 + 7) % 19

    def function(x: Tensor, rounds: int) -> Tensor:
        total = sum([hash_of(k) for k in range(rounds)])
        for k in range(rounds):
            total += hash_of(k)
        return x + total

    compiled = dynacap.compile(function)
    for rounds, left_alone in ((3, False), (200, True)):
        dynacap.reset()
        assert torch.equal(compiled(X, rounds), function(X, rounds))
        assert ("long-loop" in str(dynacap.counters()["reasons"])) is left_alone


def test_many_guards_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynacap.executor.machine.MAX_WORK", 2_000)

    def function(x: Tensor, known: list[int], found: list[int]) -> Tensor:
        return x + (known == found)

    compiled = dynacap.compile(function)
    for count, left_alone in ((3, False), (1_000, True)):
        dynacap.reset()
        given = X, [*range(count)], [*range(count)]
        assert torch.equal(compiled(*given), function(*given))
        assert ("long-loop" in str(dynacap.counters()["reasons"])) is left_alone


def test_many_tensors_are_no_loop_without_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynacap.executor.machine.MAX_WORK", 500)

    def function(tensors: list[Tensor]) -> Any:
        return torch._foreach_add([each for each in tensors if each.shape[0] > 1], 1)

    given = [X + k for k in range(200)]
    assert dynacap.explain(function)(given).graph_break_count == 0


def test_a_model_of_many_modules_is_no_loop_without_an_operation() -> None:
    class Settings(torch.nn.Module):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.scale, self.limits, self.names = 1, (0, index), {"own": "sum"}

        def forward(self, total: int) -> int:
            return total + self.scale * self.limits[0] * len(self.names["own"])

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(map(Settings, range(1_600)))

        def forward(self, x: Tensor) -> Tensor:
            total = 0
            for part in self.parts:
                total = part(total)
            return x + total

    model = Model()
    assert torch.equal(dynacap.compile(model, fullgraph=True)(X), model(X))


def test_accumulated_limit_counts_entries_that_are_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Counting()

    def function(x: Tensor, layer: Any) -> Any:
        return layer(x)

    compiled = dynacap.compile(function, backend=backend)
    with dynacap.config.patch(accumulated_recompile_limit=5):
        for _ in range(9):
            layer = torch.nn.ReLU()
            assert torch.equal(compiled(X, lambda x, layer=layer: layer(x) + 1), X + 1)
    assert len(backend.graphs) <= 5
    assert len(caplog.records) <= 1


def test_error_on_recompile() -> None:
    compiled = dynacap.compile(scaled)
    with dynacap.config.patch(error_on_recompile=True):
        compiled(X, 2)
        with pytest.raises(dynacap.RecompileError, match="k is 2; found 3"):
            compiled(X, 3)
        assert torch.equal(compiled(X, 2), scaled(X, 2))


def test_fail_on_recompile_limit() -> None:
    compiled = dynacap.compile(scaled)
    limits = {"recompile_limit": 2, "fail_on_recompile_limit_hit": True, "specialize_int": True}
    with dynacap.config.patch(limits):
        compiled(X, 1)
        compiled(X, 2)
        with pytest.raises(dynacap.FailOnRecompileLimitHit, match="recompile_limit"):
            compiled(X, 3)


def test_recompiles_are_logged() -> None:
    compiled = dynacap.compile(scaled)
    with log.collect("recompiles") as records:
        compiled(X, 2)
        compiled(X, 3)
    assert len(records) == 1
    assert "k is 2; found 3" in records[0].message


def test_code_without_tensors_settles_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    def function(k: int) -> int:
        return k * 2

    compiled = dynacap.compile(function)
    assert [compiled(k) for k in range(50)] == [k * 2 for k in range(50)]
    assert dynacap.counters()["frames"] <= 4
    assert not caplog.records


def test_loop_of_breaks_without_tensors_settles(capsys: pytest.CaptureFixture[str]) -> None:
    def function(n: int) -> int:
        total = 0
        for i in range(n):
            print(i)
            total += i
        return total

    compiled = dynacap.compile(function)
    assert [compiled(n) for n in range(30)] == [sum(range(n)) for n in range(30)]
    assert capsys.readouterr().out.count("\n") == sum(range(30))


def test_skip_holds_only_where_its_guards_do() -> None:
    """A mode that sees each operation keeps capture away; once it is gone, capture works."""
    backend = Counting()
    compiled = dynacap.compile(lambda x: x + 1, backend=backend)
    with torch.overrides.BaseTorchFunctionMode():
        for _ in range(3):
            assert torch.equal(compiled(X), X + 1)
    assert not backend.graphs
    assert dynacap.counters()["skipped"] == 1
    compiled(X)
    assert len(backend.graphs) == 1


def test_guards_that_do_not_hold_right_after_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessState, "holds", lambda self, *values: False)
    with dynacap.config.patch(checker="python"):
        compiled = dynacap.compile(lambda x: x + 1)
        for _ in range(5):
            assert torch.equal(compiled(X), X + 1)
    assert any("guards-do-not-hold" in reason for reason in dynacap.counters()["reasons"])


def test_reset_empties_and_capture_starts_again() -> None:
    backend = Counting()

    def function(x: Tensor) -> Tensor:
        y = x + 1
        print("between")
        return y * 2

    compiled = dynacap.compile(function, backend=backend)
    for expected in (2, 4, 6):
        compiled(X)
        compiled(X)
        assert len(backend.graphs) == expected
        dynacap.reset()
        assert dynacap.counters()["graphs"] == 0
        assert compiled.table.entries == ()


def test_internal_error_is_told_once_and_the_program_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> Any:
        raise AssertionError("a fault of ours")

    monkeypatch.setattr("dynacap.place.build_entry", broken)
    with dynacap.config.patch(raise_internal_errors=False):
        compiled = dynacap.compile(scaled)
        for k in (1, 1, 2):
            assert torch.equal(compiled(X, k), scaled(X, k))
    assert len(caplog.records) == 1
    assert "a fault of ours" in caplog.records[0].message
    assert "report" in caplog.records[0].message


def test_internal_error_is_raised_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise AssertionError("a fault of ours")

    monkeypatch.setattr("dynacap.place.build_entry", broken)
    with pytest.raises(AssertionError, match="a fault of ours"):
        dynacap.compile(scaled)(X, 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupt_in_a_backend_leaves_no_trace(error: type[BaseException]) -> None:
    calls: list[int] = []

    def backend(gm: GraphModule, example_inputs: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise error
        return gm

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x + 1

    compiled = dynacap.compile(function, backend=backend)
    with pytest.raises(error):
        compiled(X)
    assert torch.is_grad_enabled()
    assert compiled.table.entries == ()
    assert torch.equal(compiled(X), X + 1)
    assert len(calls) == 2


def test_interrupt_in_the_midst_of_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    original = TensorFamily.call
    armed = [True]

    def interrupted(self: TensorFamily, *args: Any) -> Any:
        if armed and armed.pop():
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(TensorFamily, "call", interrupted)

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.sin(x)

    compiled = dynacap.compile(function)
    with pytest.raises(KeyboardInterrupt):
        compiled(X)
    assert torch.is_grad_enabled()
    assert torch.equal(compiled(X), X.sin())
    assert len(compiled.table.entries) == 1


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work` in that many threads that start together; raises what one of them raised."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def one(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_one_thread_compiles_while_others_run_eager() -> None:
    release, compiling = threading.Event(), threading.Event()
    calls: list[int] = []

    def backend(gm: GraphModule, example_inputs: Any) -> Any:
        calls.append(1)
        compiling.set()
        assert release.wait(30)
        return gm

    compiled = dynacap.compile(lambda x: x + 1, backend=backend)

    def work(number: int) -> Tensor:
        if number:
            assert compiling.wait(30)
            result: Tensor = compiled(X)  # eager: the other thread has not finished
            release.set()
            return result
        return compiled(X)  # type: ignore[no-any-return]

    assert all(torch.equal(result, X + 1) for result in in_threads(2, work))
    assert calls == [1]


def test_eight_threads_with_breaks_and_recompiles(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Tensor, k: int) -> Tensor:
        y = x * k
        print("", end="")
        return (y + k).sum()

    compiled = dynacap.compile(function)
    wanted = {k: function(X, k) for k in range(4)}

    def work(number: int) -> bool:
        return all(
            torch.equal(compiled(X, (number + i) % 4), wanted[(number + i) % 4]) for i in range(25)
        )

    assert all(in_threads(8, work))


def test_reset_while_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Tensor) -> Tensor:
        y = x + 1
        print("", end="")
        return y * 2

    compiled = dynacap.compile(function)

    def work(number: int) -> bool:
        if number == 0:
            for _ in range(10):
                dynacap.reset()
            return True
        return all(torch.equal(compiled(X), (X + 1) * 2) for _ in range(15))

    assert all(in_threads(4, work))


def refuse_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no set be made by generated code."""

    def rule(e: Emitter, value: SetValue) -> str:
        return e.machine.graph_break("cannot-rebuild", "a set")  # type: ignore[no-any-return]

    monkeypatch.setitem(emit._RULES, SetValue, rule)


def test_region_ends_before_what_cannot_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_sets(monkeypatch)
    backend = Counting()

    def function(x: Tensor, n: int) -> Any:
        y = x * 2 + 1
        held = {n, 7}
        print("between")
        return y * len(held), held

    compiled = dynacap.compile(function, backend=backend)
    for _ in range(2):
        result, held = compiled(X, 3)
        assert torch.equal(result, (X * 2 + 1) * 2)
        assert held == {3, 7}
    assert len(backend.graphs) == 2
    assert any("cannot-rebuild" in reason for reason in dynacap.counters()["reasons"])


def test_callees_of_what_cannot_be_captured_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Counting()

    def function(x: Tensor) -> Tensor:
        return doubled(x) + 1

    original = Attempts.capture

    def capture(self: Attempts) -> Any:
        if self.code is function.__code__:
            raise GraphBreak("cannot-rebuild", "on purpose")
        return original(self)

    monkeypatch.setattr(Attempts, "capture", capture)
    compiled = dynacap.compile(function, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 2 + 1)
    assert len(backend.graphs) == 1

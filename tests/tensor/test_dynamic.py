"""Sizes and numbers that vary: right for each, and captured once more, not once each."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dynacap
from dynacap.config import config
from dynacap.errors import UserError
from dynacap.testing import check_same

SIZES = (1, 2, 3, 5, 8, 16)
EVEN = (4, 6, 10, 12)
LINEAR = nn.Linear(8, 4)


def rows(*sizes: int) -> list[tuple[Any, ...]]:
    """Calls with one tensor each, of so many rows."""
    return [(torch.arange(8.0 * size).reshape(size, 8),) for size in sizes]


def columns(*sizes: int) -> list[tuple[Any, ...]]:
    return [(torch.arange(2.0 * size).reshape(2, size),) for size in sizes]


def branching(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 4 else x - 1


def looping(x: Tensor) -> Tensor:
    total = torch.zeros(8)
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


def heads(x: Tensor) -> Tensor:
    b, s = x.shape[0], x.shape[1]
    q = x.view(b, s, 2, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(b, s, -1)


def causal(x: Tensor) -> Tensor:
    n = x.shape[-1]
    mask = torch.ones(n, n, dtype=torch.bool).triu(1)
    return (x.T @ x).masked_fill(mask, -torch.inf).softmax(-1)


def told(x: Tensor) -> Any:
    return x * 2, f"{x.shape[0]} rows", {x.shape[0]: "rows"}


def sizes(x: Tensor) -> Any:
    n = x.shape[0]
    return (
        x + 1,
        n * 2 + 1,
        -n,
        n // 2,
        n % 3,
        n / 2,
        x.shape,
        x.size()[:1] + (n,),
        x.numel(),
        len(x),
    )


def branches_on_parity(x: Tensor) -> Any:
    return x + (1 if x.shape[0] % 2 else 2)


# function, calls, captures at most (a size of 1 is one of its own)
VARYING: list[tuple[Callable[..., Any], list[tuple[Any, ...]], int]] = [
    (lambda x: LINEAR(x).relu(), rows(*SIZES), 2),
    (lambda x: x.view(x.size(0), 2, -1).sum(1), rows(*SIZES), 2),
    (lambda x: x.unsqueeze(1).expand(-1, 3, -1).reshape(x.shape[0] * 3, -1), rows(*SIZES), 2),
    (lambda x: torch.cat([x, x[: x.shape[0] // 2]]), rows(*EVEN), 2),
    (lambda x: x.view(x.shape[0] // 2, 2, -1), rows(*EVEN), 2),
    (lambda x: x + torch.arange(x.shape[1]), columns(*SIZES), 2),
    (lambda x: x[:, : x.shape[1] // 2], columns(*EVEN), 2),
    (lambda x: x.chunk(2, dim=-1)[0], columns(*EVEN), 2),
    (lambda x: torch.zeros(x.shape[0], x.shape[1] * 2), rows(2, 3, 4), 2),
    (lambda x: x[: min(x.shape[0], 4)], rows(2, 3, 5, 6), 3),
    (lambda x: x * 2 if x.shape == (5, 8) else x * 3, rows(2, 3, 5, 6), 3),
    (heads, [(torch.rand(2, n, 8),) for n in SIZES], 2),
    (causal, columns(*SIZES), 2),
    (sizes, rows(*SIZES), 2),
    (branching, rows(2, 3, 6, 7, 4), 3),
    (branches_on_parity, rows(2, 3, 4, 5, 6), 3),
    (looping, rows(2, 3, 4), 3),
    (told, rows(2, 3, 4), 3),
    (nn.LayerNorm(8), rows(*SIZES), 2),
    (nn.Dropout(0.5), rows(*SIZES), 2),
    (nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
     [(torch.rand(1, 2, n, n),) for n in (6, 8, 12)], 2),
    (lambda x: x * 2, [(torch.rand(8, n).t(),) for n in SIZES], 3),
    (lambda x: x * 2, [(torch.rand(n + 2, 8)[1:-1],) for n in SIZES], 3),
    (lambda x: (x * 2).sum(), [(torch.rand(n, 3, requires_grad=True),) for n in SIZES], 2),
    (lambda x: x.add_(x.shape[0]), rows(2, 3, 4), 2),
    (lambda x, n: x * n, [(torch.ones(3), n) for n in (2, 5, 7, -3, 9)], 2),
    (lambda x, n: x.sum() + n * 2 - n // 3, [(torch.ones(3), n) for n in (2, 5, 7)], 2),
    (lambda x, n: x[:n], [(torch.arange(9.0), n) for n in (2, 5, 7)], 2),
    (lambda x, n: [x, x + 1, x + 2][n], [(torch.ones(3), n) for n in (0, 1, 2)], 3),
    (lambda x, f: x * f, [(torch.ones(3), f) for f in (0.1, 0.2, 0.7, 1.5)], 2),
    (lambda x, f: x * (1 - f) + f, [(torch.ones(3), f) for f in (0.1, 0.2, 0.7)], 2),
    (lambda x, f: x / -f, [(torch.ones(3), f) for f in (0.1, 0.2, 0.0, -0.0)], 2),
    (lambda x, f: x if f > 0.5 else -x, [(torch.ones(3), f) for f in (0.1, 0.7)], 2),
]  # fmt: skip


@pytest.mark.parametrize(("function", "calls", "most"), VARYING)
@pytest.mark.parametrize("backend", ["eager", "interpreter"])
def test_what_varies_is_captured_once_more(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], most: int, backend: str
) -> None:
    outcome = check_same(
        function, *calls, compile=lambda f: dynacap.compile(f, backend=backend), breaks=0
    )
    assert outcome.counters["graphs"] <= most


@pytest.mark.parametrize(
    ("function", "calls", "most"), [row for row in VARYING if isinstance(row[1][0][-1], Tensor)]
)
def test_backends_of_torch_take_symbolic_sizes(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], most: int
) -> None:
    outcome = check_same(
        function, *calls, compile=lambda f: dynacap.compile(f, backend="aot_eager")
    )
    assert outcome.counters["graphs"] <= most + 1


def test_what_breaks_keeps_its_sizes_symbolic() -> None:
    def broken(x: Tensor) -> Tensor:
        n = x.shape[0]
        y = x * 2
        dynacap.graph_break()
        return y + n

    outcome = check_same(broken, *rows(*SIZES))
    assert outcome.counters["graphs"] <= 5


def test_what_is_only_handed_on_may_look_any_way() -> None:
    def hands_on(x: Tensor, mask: Tensor) -> Any:
        kept = x[mask]
        return {"kept": kept, "mask": mask}

    def keeps(x: Any, into: list[Any]) -> Any:
        into.append(x)
        return into[-1] is x

    calls = [(torch.arange(n), torch.arange(n) % 2 > 0) for n in (12, 11, 9, 7, 5)]
    outcome = check_same(hands_on, *calls)
    assert not outcome.counters.get("recompiles")

    others = [torch.ones(2, 3), torch.arange(3), torch.ones(1).double().requires_grad_()]
    outcome = check_same(keeps, *((other, []) for other in others), breaks=0)
    assert not outcome.counters.get("recompiles")


def test_tables_of_fakes_do_not_keep_a_view_from_dying() -> None:
    def boxes(x: Tensor, at: Tensor) -> Any:
        def area(q: Tensor) -> Tensor:
            return (q[..., 2] - q[..., 0]) * (q[..., 3] - q[..., 1])

        one = x[at]
        dynacap.graph_break()
        return area(one) + area(x)

    views = [(torch.rand(n, 4)[1:], torch.tensor(1)) for n in (5, 6, 7)]
    outcome = check_same(boxes, *views)
    assert "finalizer" not in str(outcome.reasons)


def test_numbers_read_from_tensors_do_not_recompile_each_time() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * x.sum().item()

    outcome = check_same(scaled, *((torch.rand(3),) for _ in range(6)))
    assert outcome.counters["graphs"] <= 3


def test_floats_are_rounded_as_python_rounds_them() -> None:
    """Products and sums that are equal on paper are different floats."""

    def rounded(x: Tensor, v: float, n: int) -> Any:
        return x * v, v * 0.1 * 3, v * (0.1 * 3), (1.0 - v) + v, n / 3 * 0.1 * 0.7, n * 0.1 * 3

    calls = [(torch.ones(2), v, n) for v, n in zip((0.3, 0.7, 2.3, 5.7, 0.123), range(2, 7))]
    outcome = check_same(rounded, *calls, breaks=0)
    assert outcome.counters["graphs"] <= 2
    compiled = dynacap.compile(rounded)
    for args in calls:
        assert compiled(*args)[1:] == rounded(*args)[1:]  # to the last bit


@pytest.mark.parametrize("numbers", [(0.3, 0.7, 2.3), (2, 3, 4)])
def test_numbers_that_vary_are_compared_with_tensors(numbers: Any) -> None:
    def compared(x: Tensor, n: Any) -> Any:
        return x > n, n <= x, x == n, n != x

    check_same(compared, *((torch.arange(5.0), n) for n in numbers), graphs=2, breaks=0)


def test_a_float_that_is_asked_for_is_guarded() -> None:
    def asked(x: Tensor, v: float) -> Any:
        return x * v, "big" if v * 0.1 * 3 > 0.5 else "small", x + torch.arange(0, 1, v).shape[0]

    calls = [(torch.ones(2), v) for v in (0.3, 0.7, 2.3, 0.3, 1.7, 0.05)]
    assert check_same(asked, *calls, breaks=None).counters["skipped"] == 0


def test_views_of_what_varies() -> None:
    def viewed(x: Tensor) -> Tensor:
        return x.reshape(-1) * (2 if x.shape[0] > 4 else 3)

    def calls() -> list[tuple[Any, ...]]:
        leaves = [torch.rand(n + 2, 4, requires_grad=True) for n in (2, 3, 5, 9, 4)]
        return [((leaf * 2)[1:-1],) for leaf in leaves] + [((leaf * 2).t()[1:],) for leaf in leaves]

    compiled = dynacap.compile(viewed)
    for (x,) in calls():
        assert torch.equal(compiled(x), viewed(x))


def test_dynamic_from_the_start() -> None:
    function: Any = LINEAR.forward
    always = check_same(
        function, *rows(2, 3, 5), compile=lambda f: dynacap.compile(f, dynamic=True)
    )
    never = check_same(
        function, *rows(2, 3, 5), compile=lambda f: dynacap.compile(f, dynamic=False)
    )
    assert (always.counters["graphs"], never.counters["graphs"]) == (1, 3)


def test_automatic_dynamic_shapes_can_be_turned_off() -> None:
    with config.patch(automatic_dynamic_shapes=False):
        outcome = check_same(lambda x: x * 2, *rows(2, 3, 5))
    assert outcome.counters["graphs"] == 3


@pytest.mark.parametrize("option", ["specialize_int", "specialize_float"])
def test_numbers_can_be_constants(option: str) -> None:
    numbers: tuple[Any, ...] = (2, 3, 4) if option == "specialize_int" else (0.2, 0.3, 0.4)
    with config.patch({option: True}):
        outcome = check_same(lambda x, n: x * n, *((torch.ones(2), n) for n in numbers))
    assert outcome.counters["graphs"] == 3


class TestMarks:
    """``mark_dynamic`` and its kin, also as ``torch._dynamo`` leaves them."""

    @staticmethod
    def captures(function: Any, tensors: list[Tensor]) -> int:
        dynacap.reset()
        compiled = dynacap.compile(function)
        before = dynacap.counters()["graphs"]
        for each in tensors:
            assert torch.equal(compiled(each), function(each))
        return int(dynacap.counters()["graphs"] - before)

    def test_mark_dynamic(self) -> None:
        tensors = [torch.rand(n, 4) for n in (2, 3, 4)]
        dynacap.mark_dynamic(tensors[0], 0)
        assert self.captures(lambda x: x + 1, tensors) == 1

    def test_marks_of_torch_are_understood(self) -> None:
        tensors = [torch.rand(n, 4) for n in (2, 3, 4)]
        torch._dynamo.mark_dynamic(tensors[0], 0)
        assert self.captures(lambda x: x + 1, tensors) == 1

    def test_mark_static(self) -> None:
        tensors = [torch.rand(n, 4) for n in (2, 3, 4)]
        for each in tensors:
            dynacap.mark_static(each, 0)
        assert self.captures(lambda x: x + 1, tensors) == 3

    def test_bounds_hold_in_both_directions(self) -> None:
        tensors = [torch.rand(n, 4) for n in (4, 8, 20)]
        dynacap.mark_dynamic(tensors[0], 0, min=2, max=10)
        assert self.captures(lambda x: x + 1, tensors) == 2

    def test_a_size_outside_its_bounds_is_an_error(self) -> None:
        x = torch.rand(20, 4)
        dynacap.mark_dynamic(x, 0, min=2, max=10)
        with pytest.raises(UserError, match=r"between 2 and 10, and is 20"):
            dynacap.compile(lambda x: x + 1)(x)

    def test_a_marked_size_that_gets_fixed_is_an_error(self) -> None:
        x = torch.rand(5, 4)
        dynacap.mark_dynamic(x, 0)
        with pytest.raises(UserError, match="marked dynamic, but the program works for 5 alone"):
            dynacap.compile(lambda x: x + torch.ones(5, 1))(x)

    def test_one_that_may_be_dynamic_is_no_error(self) -> None:
        x = torch.rand(5, 4)
        dynacap.maybe_mark_dynamic(x, 0)
        assert self.captures(lambda x: x + torch.ones(5, 1), [x]) == 1


def test_a_size_behind_a_plain_tuple() -> None:
    def program(x: Tensor) -> Any:
        return (-1, *()) + x.shape[1:] + (2,), (3,) + x.shape, x + 1

    check_same(program, *((torch.ones(n, n + 2),) for n in (2, 3, 5)), breaks=0, graphs=2)


def test_looking_for_what_dies_fixes_no_number() -> None:
    def firsts(numbers: Any) -> Any:
        try:
            yield from numbers
        finally:
            len(numbers)

    def program(x: Tensor) -> Any:
        n, held = x.shape[0], [x.shape[0] * 2]
        first = next(firsts([1, 2]))  # a generator that is dropped half-way
        return x * n + held[0] + first

    check_same(program, *((torch.ones(n, 2),) for n in (2, 3, 5, 6)), breaks=0, graphs=2)


def test_kernels_that_know_symbolic_sizes_in_python_alone() -> None:
    def program(x: Tensor) -> Any:
        y = x.reshape(x.shape[0] * 2, -1, 2)
        z = torch.zeros(x.shape[0], 2, 2).reshape(x.shape[0] * 2, 1, 2)
        return z.baddbmm(batch1=y, batch2=y.transpose(-1, -2), beta=1.0, alpha=0.5)

    check_same(program, *((torch.ones(n, 8),) for n in (2, 3, 5)), breaks=0, graphs=2)


def test_a_number_beside_one_that_is_too_long_to_write() -> None:
    def function(x: Tensor, n: int) -> Any:
        return x * n, n > 10**5000, n == -(10**5000), 10**5000 < n

    check_same(function, *((torch.ones(2), n) for n in (2, 3, 4)))

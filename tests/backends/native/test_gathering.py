"""What is chosen by indices: gather, index, embedding, losses; indices that lie outside."""

from collections.abc import Callable
from typing import Any

import pytest

from dynacap.testing import check_same
from tests.backends.native.against_eager import compiled

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]


def test_each_form_of_indexing(same: Same) -> None:
    x, i = torch.randn(6, 7, 5), torch.randint(5, (6, 7, 9))
    rows, columns = torch.randint(-6, 6, (4, 3)), torch.randint(-7, 7, (3,), dtype=torch.int32)

    def fn(x: Any, i: Any, rows: Any, columns: Any) -> Any:
        return [
            x.gather(-1, i) * 2, x[rows] + 1, x[:, columns].exp(), x[rows, columns] - 1,
            x[:, rows % 7].sum(-1), x.index_select(1, columns[:2].abs()) * x[:, :2],
            F.embedding(rows.abs(), x[0].t().repeat(2, 1)),
        ]  # fmt: skip

    assert same(fn, x, i, rows, columns).calls == []


def test_an_embedding_joins_what_reads_it(same: Same) -> None:
    def fn(tokens: Any, table: Any, places: Any, w: Any, b: Any) -> Any:
        return F.layer_norm(F.embedding(tokens, table) + places, (32,), w, b)

    w, b = torch.randn(2, 32)
    made = same(fn, torch.randint(50, (4, 8)), torch.randn(50, 32), torch.randn(8, 32), w, b)
    assert len(made.kernels) == 1
    assert not made.calls


def test_indices_that_the_same_graph_computes(same: Same) -> None:
    def fn(x: Any, i: Any) -> Any:
        best = x.argmax(-1, keepdim=True)
        return x.gather(-1, best) + x.gather(-1, (i * 2 + 1) % 6), x.softmax(-1).gather(-1, i)

    same(fn, torch.randn(40, 6), torch.randint(3, (40, 2)))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_and_its_gradient(same: Same, reduction: str) -> None:
    x, target = torch.randn(33, 10), torch.randint(10, (33,))
    target[::4] = -100
    w = torch.rand(10)

    def fn(x: Any, target: Any, w: Any) -> Any:
        plain = F.cross_entropy(x, target, reduction=reduction)
        image = x.view(3, 11, 10).transpose(1, 2)
        return plain, F.cross_entropy(image, target.view(3, 11), w, reduction=reduction)

    same(fn, x, target, w)
    total = torch.tensor(7.0)
    number = {"none": 0, "mean": 1, "sum": 2}[reduction]
    g = torch.randn(33) if reduction == "none" else torch.tensor(1.5)

    def backward(g: Any, x: Any, target: Any, w: Any, total: Any) -> Any:
        of_loss = torch.ops.aten.nll_loss_backward(g, x, target, w, number, -100, total)
        return torch.ops.aten._log_softmax_backward_data(of_loss, x, 1, torch.float32)

    assert same(backward, g, F.log_softmax(x, 1), target, w, total).calls == []


def test_an_index_counts_where_nothing_is_made_of_it() -> None:
    def unused(x: Any, i: Any) -> Any:
        x.index_select(0, i)
        return x + 1

    def in_part(x: Any, i: Any) -> Any:
        return (x.index_select(0, i) * 2)[:1]

    def on_the_way(x: Any, i: Any) -> Any:
        x.index_select(0, i) * 2
        return x + 1

    def chosen(x: Any, i: Any) -> Any:
        return (x.index_select(0, i) * 2)[torch.tensor([0, 0])]

    x, good, wrong = torch.randn(4, 2), torch.tensor([0, 3]), torch.tensor([0, 9])
    for function in (unused, in_part, on_the_way, chosen):
        check_same(function, (x, good), (x, wrong), compile=compiled)


def test_an_index_that_lies_outside_reads_nothing_and_is_told_of(
    lowered: Callable[..., Any],
) -> None:
    x, i = torch.randn(4, 8), torch.tensor([[0, 1], [2, 7], [3, 3], [0, 0]])
    made = lowered(lambda x, i: x.gather(1, i), x, i)
    made(x, i)
    assert not made.fault
    for wrong in (8, -1, 2**40):
        i[1, 1] = wrong
        made(x, i)
        assert made.fault


def test_positions_at_places_that_the_graph_computes(same: Same) -> None:
    """An arange that is indexed is the index itself, which has to be in memory by then."""

    def indexed(i: Any) -> list[Any]:
        positions = torch.arange(8)
        return [positions, torch.index_select(positions, -1, i.flip(0)), positions[(i + 3) % 8]]

    assert not same(indexed, torch.arange(8)).calls


@pytest.mark.parametrize("at", [0, 5, 127])
def test_one_slice_in_the_place_of_another(same: Same, at: int) -> None:
    x, token = torch.randn(4, 128, 16), torch.randn(4, 1, 16)

    def fn(x: Any, index: Any, token: Any) -> Any:
        whole = x.index_copy(1, index, token)
        column = token.repeat(1, 32, 1)[0, :, :1].repeat(4, 1)
        return whole, whole[:, :3] * 2, x[0].index_copy(-1, index % 16, column)

    assert same(fn, x, torch.tensor([at]), token).calls == []


@pytest.mark.parametrize("at", [-1, 8, 3])
def test_a_slice_for_a_place_that_may_not_be_there(at: int) -> None:
    """Whoever reads only what is not changed is told all the same."""

    def fn(x: Any, index: Any) -> Any:
        return x.index_copy(0, index, x[:1] + 1)[:2] * 2

    check_same(fn, (torch.randn(8, 3), torch.tensor([at])), compile=compiled)

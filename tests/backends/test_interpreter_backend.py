"""The interpreter backend catches metadata that does not hold."""

import re
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from dynacap.backends import compile_graph, lookup_backend
from dynacap.backends.interpreter import differences
from dynacap.errors import MetadataMismatch
from dynacap.fxlite import Graph, GraphModule


def module_of(value: Any, expected: Any) -> GraphModule:
    """A graph that gives ``value`` where its metadata promises ``expected``."""
    graph = Graph()
    x = graph.placeholder("x")
    made = graph.call_function(lambda x: value, (x,))
    made.meta.update(example_value=expected, source_loc=(__file__, 1, "user_function"))
    graph.output((made,))
    return GraphModule({}, graph)


def run(value: Any, expected: Any) -> Any:
    module = module_of(value, expected)
    return compile_graph(lookup_backend("interpreter"), module, [0])(0)


ones = torch.ones


@pytest.mark.parametrize(
    ("value", "expected", "message"),
    [
        (ones(2, 3), ones(2, 4), r"shape: expected [2, 4], found [2, 3]"),
        (ones(2), ones(2, 1), r"shape: expected [2, 1], found [2]"),
        (ones(2), ones(2, dtype=torch.int64), "dtype: expected torch.int64, found torch.float32"),
        (ones(3, 2).t(), ones(2, 3), "stride: expected [3, 1], found [1, 2]"),
        (ones(2), ones(2, device="meta"), "device: expected meta, found cpu"),
        (ones(2).to_sparse(), ones(2), "layout: expected torch.strided, found torch.sparse_coo"),
        (3, ones(2), "expected a tensor, found int"),
        ((ones(1), ones(2)), (ones(1), ones(3)), "item 1: shape: expected [3], found [2]"),
        ((ones(1),), (ones(1), ones(1)), "expected 2 values, found 1"),
        (ones(2), (ones(2),), "expected 1 values, found Tensor"),
        (3, 4, "expected 4, found 3"),
    ],
)
def test_mismatch(value: Any, expected: Any, message: str) -> None:
    with pytest.raises(MetadataMismatch, match=re.escape(message)) as caught:
        run(value, expected)
    text = str(caught.value)
    assert text.startswith("while running '%lambda_1 = call_function")
    assert "in user_function" in text
    assert "what to do:" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ones(2, 3), torch.zeros(2, 3)),
        (ones(1, 3).expand(1, 3), ones(1, 3).as_strided((1, 3), (77, 1))),
        (ones(0, 3), ones(3, 0).t()),
        ([ones(2), None, 3.5], (ones(2), None, 3.5)),
        (float("nan"), float("nan")),
        (ones(2), None),
        (object(), object()),
    ],
)
def test_no_mismatch(value: Any, expected: Any) -> None:
    assert run(value, expected) == (value,)


def test_symbolic_sizes_are_not_compared() -> None:
    shape_env = ShapeEnv()
    context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    fake = FakeTensorMode(shape_env=shape_env).from_tensor(ones(4, 3), symbolic_context=context)
    assert differences(fake, ones(9, 3), "") == []
    assert differences(fake, ones(9, 4), "") == [
        f"shape: expected {list(fake.shape)}, found [9, 4]",
        "stride: expected [3, 1], found [4, 1]",
    ]
    assert shape_env.guards == []


def test_users_exceptions_come_through_with_their_line() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.mm, (x, x))
    node.meta["source_loc"] = (__file__, 1, "user_function")
    graph.output((node,))
    value = ones(2, 3)
    function = compile_graph(lookup_backend("interpreter"), GraphModule({}, graph), [value])
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        function(value)
    assert "user_function" in [entry.name for entry in caught.traceback]

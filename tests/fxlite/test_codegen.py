"""Generated source: what it says, and that it runs alone and gives the same."""

import enum
import math
import operator
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dynacap.fxlite import Graph, GraphModule, Interpreter
from dynacap.fxlite.literals import expression
from dynacap.fxlite.names import GlobalNames, qualified_name

Pair = namedtuple("Pair", ["first", "second"])


class Color(enum.Enum):
    RED = 1


def evaluate(value: object) -> Any:
    names = GlobalNames(())
    text = expression(value, names)
    space = dict(names.values)
    exec("\n".join(names.preamble), space)
    return eval(text, space)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary() | st.complex_numbers(allow_nan=False) | st.just(...)
)  # fmt: skip
arguments = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.builds(slice, inner, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(), inner).map(OrderedDict)
        | st.frozensets(st.integers(), max_size=1)
    ),
    max_leaves=10,
)


@given(arguments)
def test_arguments_evaluate_to_themselves(value: object) -> None:
    result = evaluate(value)
    assert result == value
    assert type(result) is type(value)
    assert repr(result) == repr(value)


@pytest.mark.parametrize("value", [math.nan, -math.nan, complex(math.nan, -math.inf)])
def test_nan(value: complex) -> None:
    assert repr(evaluate(value)) == repr(value)
    assert math.copysign(1, evaluate(value).real) == math.copysign(1, value.real)


@pytest.mark.parametrize(
    "value", [Color.RED, object(), len, math.sqrt, int, Pair, range(3), set(), {1, 2}, [].append]
)
def test_objects_that_stand_for_themselves(value: object) -> None:
    result = evaluate(value)
    assert result is value or (result == value and isinstance(value, (range, set)))


def test_qualified_names_find_the_very_object() -> None:
    assert qualified_name(math.sqrt) == "math.sqrt"
    assert qualified_name(operator.add) == "operator.add"
    assert qualified_name(len) == "builtins.len"
    assert qualified_name(lambda: None) is None

    def len_again() -> None:
        return None

    len_again.__name__ = len_again.__qualname__ = "len"
    len_again.__module__ = "builtins"
    assert qualified_name(len_again) is None


def test_source_of_a_graph() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=2.0)
    unused = graph.placeholder("unused", default_value=None)
    scale = graph.get_attr("layer.scale")
    total = graph.call_function(operator.add, (x, y))
    total.meta["source_loc"] = ("user.py", 7, "forward")
    power = graph.call_function(operator.pow, (-1, total))
    picked = graph.call_function(operator.getitem, (x, (slice(None, -1), None, ..., 0)))
    graph.call_function(operator.setitem, (picked, slice(1, None, 2), scale))
    graph.call_method("append", (x, total), {"key": "v"})
    root = graph.call_function(math.sqrt, (power,), {})
    graph.call_module("layer.act", (root,), {"not-a-name": 1})
    graph.output((root, [picked, total]))
    code = GraphModule({"layer.scale": 1, "layer.act": dict}, graph).code
    assert code == (
        "import math\n"
        "\n"
        "\n"
        "def forward(self, x, y=2.0, unused=None):\n"
        "    # 3 inputs\n"
        "    unused = None  # not used\n"
        "    layer_scale = self.layer.scale\n"
        "    # user.py:7 in forward\n"
        "    add = x + y;  y = None\n"
        "    pow_1 = (-1) ** add\n"
        "    getitem = x[:-1, None, Ellipsis, 0]\n"
        "    getitem[1::2] = layer_scale;  layer_scale = None\n"
        "    x.append(add, key='v');  x = None\n"
        "    sqrt = math.sqrt(pow_1);  pow_1 = None\n"
        "    self.layer.act(sqrt, **{'not-a-name': 1})\n"
        "    return (sqrt, [getitem, add])\n"
    )
    assert unused.name == "unused"


def test_names_of_nodes_may_be_those_of_modules() -> None:
    graph = Graph()
    module = graph.placeholder("math")
    value = graph.call_function(math.sqrt, (module,))
    own_self = graph.placeholder("self")
    graph.placeholder("error")
    graph.output((value, own_self))
    assert GraphModule({}, graph)(16.0, "s", 0) == (4.0, "s")
    assert "import math as math_1" in GraphModule({}, graph).code


OPERATORS: list[Any] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.iadd,
    operator.neg, operator.pos, operator.invert, operator.not_, operator.truth, operator.is_,
    max, divmod, abs, str,
]  # fmt: skip


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_with_constants_and_nodes(function: Any) -> None:
    unary = function in (
        operator.neg, operator.pos, operator.invert, operator.not_, operator.truth, abs, str
    )  # fmt: skip
    argument_lists: tuple[list[Any], ...] = ["x"], [-3], [3]
    if not unary:
        small = 2 if function in (operator.lshift, operator.rshift) else -2
        argument_lists = ["x", "y"], ["x", small], [-5, "y"], [7, 2]
    graph = Graph()
    inputs = {"x": graph.placeholder("x"), "y": graph.placeholder("y")}
    results = [
        graph.call_function(function, tuple(inputs.get(arg, arg) for arg in args))
        for args in argument_lists
    ]
    graph.output(tuple(results))
    module = GraphModule({}, graph)
    values = {"x": 6, "y": 2}
    expected = tuple(function(*[values.get(arg, arg) for arg in args]) for args in argument_lists)
    assert module(6, 2) == expected == Interpreter(module).run(6, 2)


def test_source_runs_alone() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    total = graph.call_function(math.fsum, ([x, 1.5],))
    graph.output((graph.call_function(Pair, (total, graph.get_attr("bias"))),))
    space: dict[str, Any] = {}
    module = GraphModule({"bias": 3}, graph)
    exec(module.code, space)
    assert space["forward"](module, 2.0) == module(2.0) == (Pair(3.5, 3),)


def test_varargs_placeholders() -> None:
    graph = Graph()
    rest = graph.placeholder("*rest")
    options = graph.placeholder("**options")
    graph.output((rest, options))
    assert GraphModule({}, graph)(1, 2, k=3) == ((1, 2), {"k": 3})


def test_graph_without_output_returns_none() -> None:
    graph = Graph()
    graph.call_function(abs, (graph.placeholder("x"),))
    assert GraphModule({}, graph)(1) is None


def test_methods_taken_from_their_class() -> None:
    assert qualified_name(str.upper) == "builtins.str.upper"
    graph = Graph()
    graph.output((graph.call_function(str.upper, (graph.placeholder("x"),)),))
    assert "upper = str.upper(x)" in GraphModule({}, graph).code
    assert GraphModule({}, graph)("a") == ("A",)

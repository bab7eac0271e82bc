"""The table and the picture."""

import operator
import re
from types import SimpleNamespace

import pytest

from dynacap.fxlite import Graph, to_dot
from dynacap.fxlite.printer import HEADER, describe, rows


def tensor(dtype: str, *shape: int) -> SimpleNamespace:
    return SimpleNamespace(dtype=f"torch.{dtype}", shape=shape)


def sample() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["example_value"] = tensor("float32", 2, 3)
    total = graph.call_function(operator.add, (x, 1), {"alpha": x})
    total.meta.update(val=tensor("int64"), source_loc=("user.py", 3, "f"))
    graph.output((total,))
    return graph


def test_rows() -> None:
    assert len(HEADER) == 6
    assert rows(sample()) == [
        ("placeholder", "x", "x", "", "f32[2, 3]", ""),
        ("call_function", "add", "operator.add", "%x, 1, alpha=%x", "i64[]", "user.py:3 in f"),
        ("output", "output", "output", "(%add,)", "", ""),
    ]


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    graph = sample()
    graph.print_tabular()
    printed = capsys.readouterr().out
    assert printed == graph.table() + "\n"
    lines = printed.splitlines()
    assert re.split("  +", lines[0]) == list(HEADER)
    assert lines[3].index("operator.add") == lines[0].index("target")
    assert max(map(len, lines)) == len(lines[3])


def test_long_arguments_are_cut_and_empty_columns_left_out() -> None:
    graph = Graph()
    graph.output((graph.call_function(print, ("long " * 100,)),))
    text = graph.table()
    assert max(map(len, text.splitlines())) < 130
    assert "…" in text
    assert "result" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tensor("bfloat16", 4), "bf16[4]"),
        (tensor("bool", 1), "bool[1]"),
        (tensor("complex64"), "c64[]"),
        ((tensor("uint8", 2), None, 3), "(u8[2], None, 3)"),
        (None, ""),
        (2.5, "2.5"),
        (object(), "object"),
    ],
)
def test_descriptions(value: object, text: str) -> None:
    assert describe(value) == text


def test_picture() -> None:
    text = to_dot(sample(), 'a "title"')
    assert text.splitlines() == [
        'digraph "a \\"title\\"" {',
        '  node [shape=box, fontname="monospace"];',
        '  "x" [label="x\\nf32[2, 3]", shape=invhouse];',
        '  "add" [label="add\\noperator.add\\ni64[]"];',
        '  "output" [label="output", shape=house];',
        '  "x" -> "add";',
        '  "add" -> "output";',
        "}",
    ]

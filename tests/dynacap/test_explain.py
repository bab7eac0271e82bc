"""`explain` and the logs tell what happened, once, and change nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap import log

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


def talkative(x: Tensor, k: int = 2) -> Tensor:
    y = x * k
    print("between")
    return y + 1


def test_explain_runs_the_function_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = dynacap.explain(talkative)(X)
    assert capsys.readouterr().out == "between\n"
    assert (told.graph_count, told.op_count, told.graph_break_count) == (2, 2, 1)
    assert told.break_reasons[0].reason == "print"
    assert len(told.graphs) == 2
    text = str(told)
    for part in ("graphs: 2", "talkative", "test_explain.py", 'print("between")', "what to do",
                 "k is 2", "mul = x * 2", "generated function"):  # fmt: skip
        assert part in text


def test_explain_of_what_is_compiled_already(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = dynacap.compile(talkative)
    compiled(X)
    assert dynacap.explain(compiled)(X).graph_count == 2
    with pytest.raises(dynacap.UserError, match="backend"):
        dynacap.explain(compiled, backend="eager")


def test_explain_tells_of_plain_python() -> None:
    told = dynacap.explain(lambda k: k + 1)(3)
    assert told.graph_count == 0
    assert "no tensor operations" in str(told)
    assert told.skipped


def test_explain_names_a_module_by_its_class_and_its_arguments_by_their_names() -> None:
    class Net(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return features * 2

    told = dynacap.explain(Net())(X)
    text = str(told)
    assert "Net (" in text
    assert "features is a torch.Tensor" in text
    assert "call_module (" not in text


def test_explain_leaves_no_marks_on_the_function() -> None:
    before = dict(vars(talkative))
    dynacap.explain(talkative)(X)
    assert vars(talkative) == before


def test_each_channel_has_its_records(capsys: pytest.CaptureFixture[str]) -> None:
    with log.collect() as records:
        compiled = dynacap.compile(talkative)
        compiled(X)
        compiled(X, 3)
    found = {record.channel for record in records}
    assert found >= {"graph", "guards", "breaks", "recompiles", "code", "bytecode"}
    fields = {record.channel: record.fields for record in records}
    assert fields["breaks"]["reason"] == "print"
    assert fields["graph"]["ops"] == 1


def test_logs_from_the_environment() -> None:
    program = (
        "import torch, dynacap\n"
        "def f(x):\n    y = x + 1\n    print('hi')\n    return y * 2\n"
        "g = dynacap.compile(f)\ng(torch.ones(2)); g(torch.ones(3))\n"
    )
    names = "graph,guards,breaks,recompiles,code,bytecode"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DYNACAP_LOGS": names},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for channel in names.split(","):
        assert f"[dynacap.{channel}]" in done.stderr, channel
    assert done.stdout == "hi\nhi\n"


def test_counters() -> None:
    compiled = dynacap.compile(lambda x, k: x * k)
    before = dynacap.counters()
    compiled(X, 1)
    compiled(X, 1)
    compiled(X, 2)
    after = dynacap.counters()
    changed: dict[str, Any] = {k: after[k] - before[k] for k in after if k != "reasons"}
    assert changed == {
        "frames": 2, "graphs": 2, "ops": 2, "breaks": 0, "skipped": 0, "recompiles": 1,
        "recalled": 0,
    }  # fmt: skip

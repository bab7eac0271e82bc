"""Exceptions out of a graph point at the user's line."""

import operator
import traceback
from pathlib import Path
from typing import Any

import pytest

from dynacap.errors import UserFrame, format_stack
from dynacap.fxlite import Graph, GraphModule, Interpreter
from dynacap.fxlite.locations import StackTraces, innermost, raw_location, user_stack

FRAMES = (UserFrame("outer.py", 3, "main"), UserFrame("inner.py", 7, "forward"))


@pytest.mark.parametrize(
    "meta",
    [
        {"source_stack": FRAMES},
        {"source_stack": (("outer.py", 3, "main"), ("inner.py", 7, "forward"))},
        {"stack_trace": format_stack(FRAMES)},
        {"stack_trace": '  File "outer.py", line 3, in main\n    x()\n'
                        '  File "inner.py", line 7, in forward'},
    ],
)  # fmt: skip
def test_origins_are_read_in_every_form(meta: dict[str, Any]) -> None:
    assert user_stack(meta) == FRAMES
    assert innermost(raw_location(meta)) == FRAMES[-1]


@pytest.mark.parametrize("loc", [FRAMES[1], ("inner.py", 7, "forward")])
def test_origin_of_one_frame(loc: object) -> None:
    assert user_stack({"source_loc": loc}) == (FRAMES[1],)
    assert innermost(loc) == FRAMES[1]


def test_no_origin() -> None:
    assert user_stack({}) == ()
    assert innermost(None) is None
    assert StackTraces().text({}) is None


def user_file(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text("def main(x):\n    return forward(x)\n\ndef forward(x):\n    return x / 0\n")
    return str(path)


def failing(path: str, **meta: object) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    fine = graph.call_function(operator.add, (x, 1))
    fine.meta["source_loc"] = (path, 1, "elsewhere")
    broken = graph.call_function(operator.truediv, (fine, 0))
    broken.meta.update(meta)
    graph.output((broken,))
    return GraphModule({}, graph)


@pytest.mark.parametrize("interpreted", [False, True])
def test_the_user_frames_are_in_the_traceback(tmp_path: Path, interpreted: bool) -> None:
    path = user_file(tmp_path)
    module = failing(path, source_stack=((path, 2, "main"), (path, 5, "forward")))
    run = Interpreter(module).run if interpreted else module
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        run(1)
    shown = traceback.extract_tb(caught.value.__traceback__)
    mine = [(frame.lineno, frame.name, frame.line) for frame in shown if frame.filename == path]
    assert mine == [(2, "main", "return forward(x)"), (5, "forward", "return x / 0")]
    assert shown[0].filename == __file__
    if not interpreted:
        graph_frame = next(f for f in shown if f.filename.startswith("<dynacap graph"))
        assert graph_frame.line == "truediv = add / 0;  add = None"
        assert [f.filename for f in shown][-3:] == [graph_frame.filename, path, path]


def test_frames_of_callees_come_after_the_user_frames(tmp_path: Path) -> None:
    path = user_file(tmp_path)

    def callee(value: int) -> None:
        raise KeyError(value)

    module = failing(path, source_loc=(path, 5, "forward"))
    module.graph.find_nodes(op="call_function")[1].target = callee
    with pytest.raises(TypeError):
        module(1)
    node = module.graph.find_nodes(op="call_function")[1]
    node.args = (node.args[0],)
    module.recompile()
    with pytest.raises(KeyError) as caught:
        module(1)
    shown = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert shown[-3:] == ["forward", "forward", "callee"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration, RuntimeError])
def test_the_exception_is_the_users_own_object(error: type[BaseException]) -> None:
    raised = error("mine")
    cause = ValueError("cause")

    def fail(value: object) -> None:
        raise raised from cause

    graph = Graph()
    node = graph.call_function(fail, (graph.placeholder("x"),))
    node.meta["source_loc"] = ("nowhere.py", 12, "f")
    graph.output((node,))
    with pytest.raises(error) as caught:
        GraphModule({}, graph)(1)
    assert caught.value is raised
    assert raised.__cause__ is cause
    assert raised.__context__ is None
    assert raised.args == ("mine",)
    assert ("nowhere.py", 12) in [
        (f.filename, f.lineno) for f in traceback.extract_tb(raised.__traceback__)
    ]


def test_without_origin_the_traceback_is_as_python_made_it() -> None:
    module = failing("model.py")
    with pytest.raises(ZeroDivisionError) as caught:
        module(1)
    shown = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in shown][-2:] == ["__call__", "forward"]


def test_nested_graphs_show_both_lines(tmp_path: Path) -> None:
    path = user_file(tmp_path)
    inner = failing(path, source_loc=(path, 5, "forward"))
    graph = Graph()
    call = graph.call_function(inner.forward, (graph.placeholder("x"),))
    call.meta["source_loc"] = (path, 2, "main")
    graph.output((call,))
    with pytest.raises(ZeroDivisionError) as caught:
        GraphModule({}, graph)(1)
    shown = [
        frame.lineno
        for frame in traceback.extract_tb(caught.value.__traceback__)
        if frame.filename == path
    ]
    assert shown == [2, 5]


def test_stack_traces_are_made_once_for_each_stack() -> None:
    traces = StackTraces()
    text = traces.text({"source_stack": FRAMES})
    assert text == format_stack(FRAMES)
    assert traces.text({"source_stack": tuple(FRAMES)}) is text
    assert traces.text({"stack_trace": "given", "source_stack": FRAMES}) == "given"


def test_stack_trace_of_a_node() -> None:
    node = Graph().placeholder("x")
    assert node.stack_trace is None
    node.meta["source_stack"] = FRAMES
    assert node.stack_trace == format_stack(FRAMES)


def test_recursion_into_the_graph_ends_as_in_eager() -> None:
    graph = Graph()
    node = graph.call_function(lambda x: module(x), (graph.placeholder("x"),))
    node.meta["source_loc"] = FRAMES[0]
    graph.output((node,))
    module = GraphModule({}, graph)
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        module(1)

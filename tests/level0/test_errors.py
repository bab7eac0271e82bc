"""Exceptions: what they say, and that they survive pickling."""

import pickle
from pathlib import Path

import pytest

from dynacap import errors
from dynacap.errors import BackendCompilerFailed, GraphBreak, Unsupported, UserFrame


@pytest.fixture
def frame(tmp_path: Path) -> UserFrame:
    path = tmp_path / "model.py"
    path.write_text("def f(x):\n    print(x)\n")
    return UserFrame(str(path), 2, "f")


def test_all_errors_share_one_base() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert all(issubclass(c, errors.DynacapError) for c in classes)
    assert all(c.__doc__ for c in classes)


def test_a_break_says_what_why_where_and_what_to_do(frame: UserFrame) -> None:
    text = str(GraphBreak("print", "print was called", "log after the step", (frame,)))
    assert "[print]: print was called" in text
    assert "what to do: log after the step" in text
    assert f'File "{frame.filename}", line 2, in f\n    print(x)' in text


def test_unsupported_says_all_that_the_break_does(frame: UserFrame) -> None:
    graph_break = GraphBreak("print", "print was called", "log after the step", (frame,))
    error = Unsupported.from_break(graph_break)
    assert str(error) == str(graph_break)
    assert (error.reason, error.stack) == ("print", (frame,))


def test_a_frame_without_a_file_prints_its_place_only() -> None:
    frame = UserFrame("<stdin>", 3, "g")
    assert str(frame) == "<stdin>:3 in g"
    assert errors.format_stack((frame,)) == '  File "<stdin>", line 3, in g'


def test_a_failed_backend_names_backend_node_and_graph() -> None:
    inner = ZeroDivisionError("by zero")
    error = BackendCompilerFailed("mine", inner, "add_1 = add(x, y)", "x\ny")
    text = str(error)
    assert error.__cause__ is inner
    assert "backend 'mine' failed: ZeroDivisionError: by zero" in text
    assert "at node: add_1 = add(x, y)" in text
    assert "    x\n    y" in text


@pytest.mark.parametrize(
    "error",
    [
        GraphBreak("print", "d", "h", (UserFrame("a.py", 1, "f"),)),
        Unsupported("print", "d", "h"),
        errors.SkipFrame("generator", "made by f"),
        BackendCompilerFailed("mine", ValueError("no"), "n", "g"),
        errors.UserError("what"),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)

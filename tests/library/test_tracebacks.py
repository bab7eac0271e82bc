"""Tracebacks of exceptions that were raised while capturing."""

import traceback
import types
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


class Looks:
    """A context manager that looks into the traceback."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __enter__(self) -> "Looks":
        return self

    def __exit__(self, kind: Any, value: Any, tb: types.TracebackType | None) -> bool:
        assert tb is not None
        self.seen.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        traceback.clear_frames(tb)
        return True


@program((X,), breaks=None)
def test_exit_looks_into_the_traceback(x: Tensor) -> Any:
    looks = Looks()
    with looks:
        {}.pop("missing")
    with looks:
        raise KeyError
    return x + len(looks.seen), looks.seen


@program((X,), breaks=None)
def test_the_context_of_what_the_library_raises(x: Tensor) -> Any:
    try:
        try:
            raise ValueError("first")
        except ValueError:
            {}["second"]  # type: ignore[misc]
    except KeyError as error:
        return repr(error.__context__), error.__traceback__ is not None, x + 1
    return None

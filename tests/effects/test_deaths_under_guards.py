"""What captured code looked at dies when eager's does: guards do not keep it."""

import functools
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(3.0)


@program((X,), breaks=None)
def test_static_and_class_methods(x: Tensor) -> Any:
    class Local:
        @staticmethod
        @functools.lru_cache
        def static(n: int) -> int:
            return n

        @classmethod
        def of_class(cls, n: int) -> int:
            return n + 1

    x = x + Local.static(1) + Local.of_class(2)
    refs = [weakref.ref(Local.static), weakref.ref(Local.of_class.__func__)]
    alive = [ref() is not None for ref in refs]
    del Local
    gc.collect()
    return x, alive, [ref() is None for ref in refs]


def builtin(text: str) -> Callable[[], str]:
    """A C function that no module has."""
    found = types.SimpleNamespace(call=text.upper)
    return found.call


@program((X,), breaks=None)
def test_builtin_functions(x: Tensor) -> Any:
    function = builtin("text")
    ref = weakref.ref(function)
    said = function()
    same = ref() is function
    del function
    return x + same, said, ref() is None

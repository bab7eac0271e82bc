"""Functions that the standard library has in Python too, and replaces where it can by C."""

import ast
import bisect
import collections
import functools
import heapq
import inspect
import types
from collections.abc import Callable
from typing import Any

from dynacap.values.natives import polyfill

_EMPTY_FAILS = ("heappop", "heapreplace", "heappop_max", "heapreplace_max")


def written_in_python(module: types.ModuleType) -> dict[str, Any]:
    """The functions of a module as its source has them, as code of ours: without a traceback."""
    tree = ast.parse(inspect.getsource(module))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    made: dict[str, Any] = {}
    exec(compile(tree, __file__, "exec"), made)
    return made


def refusing_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the error of its twin in C for an empty heap."""

    @functools.wraps(function)
    def checked(heap: list[Any], *rest: Any) -> Any:
        if not heap:
            raise IndexError("index out of range")
        return function(heap, *rest)

    return checked


for _module in (bisect, collections, heapq):
    for _name, _made in written_in_python(_module).items():
        _target = vars(_module).get(_name)
        if isinstance(_target, types.BuiltinFunctionType):
            _fails = _name.removeprefix("_") in _EMPTY_FAILS
            polyfill(_target)(refusing_empty(_made) if _fails else _made)

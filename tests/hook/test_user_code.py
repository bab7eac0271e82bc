"""Which functions that eager code calls are offered to capture."""

import importlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dynacap import backends, fxlite, guards
from dynacap.hook.user_code import is_users, may_be_users
from dynacap.testing import check_same

pytestmark = pytest.mark.torch


sympy: Any = importlib.import_module("sympy")


def of_the_users() -> None: ...


@pytest.mark.parametrize(
    ("function", "users"),
    [
        (of_the_users, True),
        (torch.nn.Linear.forward, True),
        (check_same, False),
        (backends.lookup_backend, False),
        (fxlite.Graph.lint, False),
        (guards.make_checker, False),
        (torch.fx.Graph.lint, False),
        (sympy.Symbol.__new__, False),
        (np.linalg.norm, False),
        (json.dumps, False),
    ],
)
def test_whose_a_function_is(function: Callable[..., Any], users: bool) -> None:
    plain: Any = getattr(function, "__wrapped__", function)
    assert is_users(plain, plain.__code__) is users


@pytest.mark.parametrize(
    ("function", "worth"),
    [
        (of_the_users, True),
        (torch.nn.Linear.forward, True),
        (torch.compiler.disable(of_the_users), True),
        (torch.fx.Graph.python_code, False),
        (json.dumps, False),
    ],
)
def test_whose_functions_are_searched_for(function: Any, worth: bool) -> None:
    """Of what torch and the library run none is, but what torch wraps the user's with."""
    assert may_be_users(function.__code__) is worth

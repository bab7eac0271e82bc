"""A metaclass's ``__getattribute__`` hears on warm calls what it hears from eager."""

from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = pytest.mark.torch


def test_making_an_object_asks_nothing_more() -> None:
    asked: list[str] = []

    class Listening(type):
        def __getattribute__(cls, name: str) -> Any:
            asked.append(name)
            return type.__getattribute__(cls, name)

    class Point(metaclass=Listening):
        size = 3

        def __init__(self) -> None:
            self.x = 2

    def function(x: Tensor) -> Any:
        point = Point()
        return x * point.x + Point.size, point

    compiled = dynacap.compile(function)
    compiled(torch.ones(2))
    heard = []
    for each in (function, compiled):
        asked.clear()
        each(torch.ones(2))
        heard.append(list(asked))
    assert heard[0] == heard[1] == ["size"]

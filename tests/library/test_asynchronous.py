"""Coroutines run by an event loop inside a captured function."""

import asyncio
import types
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(3.0)


async def added(x: Tensor, by: int) -> Tensor:
    await asyncio.sleep(0)
    return x + by


async def both(x: Tensor) -> Tensor:
    left, right = await asyncio.gather(added(x, 1), added(x, 2))
    return left * right


@program((X,), breaks=None)
def test_an_event_loop_is_one_break(x: Tensor) -> Any:
    return asyncio.run(both(x * 2)) + 1


async def fields_of_a_task(x: Tensor) -> Any:
    task = asyncio.ensure_future(added(x, 1))
    return task.done(), await task


@program((X,), breaks=None)
def test_objects_that_hide_their_attributes(x: Tensor) -> Any:
    coroutine = fields_of_a_task(x)
    with asyncio.Runner() as runner:
        return runner.run(coroutine)


@program((X,), breaks=None)
def test_generators_that_wait_for_a_coroutine(x: Tensor) -> Any:
    """Only those that types.coroutine marks may."""

    def waits(of: Any) -> Any:
        return (yield from of)

    coroutine = added(x, 1)
    try:
        found: Any = list(waits(coroutine))
    except TypeError as error:
        found = str(error)
    generator = types.coroutine(waits)(coroutine)
    return x * 2, found, next(generator), [*generator], coroutine.cr_running

"""Programs that restate public bug reports against compilers like this one: tensors and output.

Each names the report that it restates. Eager Python says what is right.
"""

from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, scenario


@scenario(breaks=None)
def test_index_error_reaches_its_handler_184364() -> Scenario:
    """An operator's `IndexError` arrives at the function's own handler as that."""

    def function(x: Tensor, dim: int) -> Any:
        try:
            return x.log_softmax(dim=dim).mean(dim)
        except IndexError as error:
            return x.mean() + 5, type(error).__name__

    return Scenario(function, [call(torch.ones(3, 2), 0), call(torch.ones(3, 2), 4)])


@scenario(breaks=None)
def test_context_manager_made_before_a_break_124900() -> Scenario:
    """A context manager made before a break and entered after it works."""

    def function(x: Tensor) -> Any:
        quiet = torch.no_grad()
        y = x + 3
        print("shape", list(y.shape))
        with quiet:
            z = y * y
            print("recording", torch.is_grad_enabled())
            w = z - 1
        return y, z, w, torch.is_grad_enabled()

    calls = [call(torch.ones(3, requires_grad=True)) for _ in range(2)]
    return Scenario(function, calls)


@scenario(breaks=None)
def test_error_at_run_time_is_caught_126474() -> Scenario:
    """`out=` that overlaps an input raises within the function, which handles it."""

    def function(x: Tensor) -> Any:
        try:
            torch.add(x[:-1], 10, out=x[1:])
            way = "in place"
        except RuntimeError:
            way = "through a copy"
            x[1:] = x[:-1].clone() + 10
        return x - 1, way

    return Scenario(function, [call(torch.zeros(3)), call(torch.arange(5.0))])


@scenario(breaks=None)
def test_printed_tensors_keep_order_and_text_120375() -> Scenario:
    """What is printed between in-place changes shows the values of that moment."""

    def function(x: Tensor) -> Any:
        doubled = x * 2
        print(f"{doubled=}")
        doubled.sub_(5)
        print("now", doubled, doubled.dtype, sep=" / ", end=";\n")
        text = f"{doubled.mean():.2f} of {len(doubled)} {x.shape}"
        doubled.mul_(0)
        print(text, repr(doubled)[:12])
        return doubled, text

    return Scenario(function, [call(torch.ones(3)), call(torch.arange(3.0))])


@scenario(breaks=None)
def test_formatted_float_that_changes_197093() -> Scenario:
    """A float that differs from call to call is formatted as text each time."""

    def function(x: Tensor, share: float) -> Any:
        text = f"{share:.1%} {share:>8.3f}"
        return x - share, text, type(text).__name__, len(text)

    return Scenario(function, [call(torch.ones(2), v) for v in (0.5, 0.125, 3.0, 0.5)])

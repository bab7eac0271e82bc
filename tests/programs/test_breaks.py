"""Graph breaks: in straight code, loops, `with`, `try`, comprehensions and callees.

Counts of breaks depend on how often a piece is captured, so most say only that the answer is right.
"""

import contextlib
import itertools
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
LEAF = torch.arange(3.0).requires_grad_()
ENGINE: Any = dynacap
OURS = tuple(
    str(Path(dynacap.__file__).parent / part) for part in ("hook", "driver", "running", "place")
)


def talk(text: str) -> str:
    print("talk", text)
    return text + "!"


@contextlib.contextmanager
def noisy(name: str) -> Iterator[str]:
    print("enter", name)
    try:
        yield name
    finally:
        print("exit", name)


class Layer(torch.nn.Module):
    """A module with a break in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        print("between")
        return self.second(y)


@program((X,), graphs=2, breaks=1)
def test_print_between(x: Tensor) -> Any:
    y = x + 1
    print("y is", y)
    return y * 2


@program((X,), breaks=None)
def test_print_first_and_last(x: Tensor) -> Any:
    print("start")
    y = x * 2
    print("end", y.shape, sep="|", end=".\n")
    return y


@program((X,), breaks=None)
def test_item(x: Tensor) -> Any:
    n = x.sum().item()
    return x * n, n, type(n)


@program(call(X), call(-X), call(X), breaks=None)
def test_branch_on_tensor(x: Tensor) -> Any:
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


@program(call(X), call(X * 0), breaks=None)
def test_tensor_truth_in_expressions(x: Tensor) -> Any:
    total = x.sum()
    a = "yes" if total else "no"
    b = total and 5
    c = not total
    return a, b, c, bool(total), x + 1


@program((X.clone(),), breaks=None)
def test_while_on_tensor(x: Tensor) -> Any:
    steps = 0
    while x.sum() < 100:
        x = x * 2
        steps += 1
    return x, steps


@program((X,), breaks=None)
def test_break_in_for_loop(x: Tensor) -> Any:
    out = []
    for i in range(3):
        x = x + i
        print("step", i)
        out.append(x * 2)
    return x, out


@program((X,), breaks=None)
def test_break_in_nested_loops(x: Tensor) -> Any:
    for i in range(2):
        for name in ("a", "b"):
            x = x + i
            talk(name)
            if i == 1:
                break
        else:
            x = x * 2
    return x


@program((X,), breaks=None)
def test_break_in_loop_over_generator(x: Tensor) -> Any:
    def numbers() -> Iterator[int]:
        for i in range(3):
            print("making", i)
            yield i

    for n in numbers():
        x = x * (n + 1)
    return x


@program((X,), breaks=None)
def test_break_in_loop_over_zip_and_dict(x: Tensor) -> Any:
    table = {"p": 1, "q": 2}
    for (key, value), i in zip(table.items(), range(5), strict=False):
        x = x + value
        print(key, i)
    return x


@program((X,), breaks=None)
def test_break_inside_with(x: Tensor) -> Any:
    with noisy("outer") as a:
        x = x + 1
        print("inside", a)
        with noisy("inner"):
            x = x * 2
            print("deep")
            x = x - 1
    return x


@program((LEAF,), breaks=None)
def test_break_inside_no_grad(x: Tensor) -> Any:
    y = x * 2
    with torch.no_grad():
        z = y * 3
        print("grad", torch.is_grad_enabled())
        z = z + 1
    w = y + 1
    return y, z, w, torch.is_grad_enabled()


@program((X,), breaks=None)
def test_break_inside_autocast(x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        print(y.dtype)
        z = x @ x.T
    return y, z, x @ x.T


@program(call(X, 0), call(X, 1), call(X, 2), breaks=None)
def test_break_inside_try(x: Tensor, n: int) -> Any:
    log = []
    try:
        x = x + 1
        print("trying", n)
        if n == 1:
            raise KeyError("k")
        x = x * 2
    except KeyError as error:
        print("handling", error)
        log.append(repr(error))
        x = x - 1
    else:
        print("else")
        x = x * 10
    finally:
        print("finally")
        x = x + 0.5
    return x, log


@program((X,), breaks=None)
def test_break_raises_into_try(x: Tensor) -> Any:
    try:
        y = x + 1
        y.numpy().reshape(7, 7)
        return y
    except ValueError as error:
        z = x * 2
        return z, type(error).__name__


@program((X,), breaks=None)
def test_break_inside_handler_keeps_exception(x: Tensor) -> Any:
    try:
        raise KeyError("first")
    except KeyError:
        print("in handler")
        y = x + 1
        try:
            raise ValueError("second")
        except ValueError as error:
            print("nested")
            return y, error, error.__context__


@program((X,), breaks=None)
def test_bare_raise_after_break(x: Tensor) -> Any:
    try:
        raise KeyError("again")
    except KeyError:
        print("about to raise again", x.sum())
        raise


@program((X,), breaks=None)
def test_break_in_callee(x: Tensor) -> Any:
    def inner(t: Tensor) -> Any:
        a = t + 1
        print("inner")
        return a * 2

    y = x * 3
    z = inner(y)
    return z + y


@program((X,), breaks=None)
def test_break_three_frames_down(x: Tensor) -> Any:
    def low(t: Tensor, k: int) -> Any:
        t = t * k
        print("low", k)
        return t + 1

    def middle(t: Tensor) -> Any:
        total = t
        for k in range(2):
            total = total + low(t, k)
        return total

    def high(t: Tensor) -> Any:
        return middle(t + 1) * middle(t + 2)

    return high(x) - 1


@program((X,), breaks=None)
def test_break_in_recursion(x: Tensor) -> Any:
    def down(t: Tensor, n: int) -> Any:
        if n == 0:
            print("bottom")
            return t
        return down(t + n, n - 1) * 2

    return down(x, 4)


@program((X,), breaks=None)
def test_break_in_comprehension(x: Tensor) -> Any:
    k = 2
    ys = [(print("item", i), x * i + k)[1] for i in range(3)]
    table = {i: talk(str(i)) for i in range(2)}
    return torch.stack(ys), table, {talk(c) for c in "a"}


@program((X,), breaks=None)
def test_break_in_generator_expression(x: Tensor) -> Any:
    return x + sum(len(talk(c)) for c in "abc")


@program((X,), breaks=None)
def test_break_in_argument_position(x: Tensor) -> Any:
    return torch.add(x + 1, x * len(talk("arg")), alpha=len(talk("kw")))


@program((X,), breaks=None)
def test_break_in_expression_with_deep_stack(x: Tensor) -> Any:
    return [1, {"k": (x + 1, talk("deep"), x * 2)}, f"{talk('f')}-{x.shape}"]


@program((X,), breaks=None)
def test_break_in_method_and_property(x: Tensor) -> Any:
    class Loud:
        def __init__(self) -> None:
            print("init")
            self.n = 2

        @property
        def size(self) -> int:
            print("property")
            return self.n

        def __add__(self, other: int) -> int:
            print("add")
            return self.n + other

        def __getitem__(self, key: Any) -> Any:
            print("item", key)
            return key

        def __enter__(self) -> int:
            print("enter")
            return self.n

        def __exit__(self, *info: Any) -> None:
            print("exit", info)

        def __iter__(self) -> Iterator[int]:
            print("iter")
            yield 1
            print("one")

        def __bool__(self) -> bool:
            print("bool")
            return True

    loud = Loud()
    with loud as two:
        x = x * two
    return x * loud.size, loud + 1, loud["k"], list(loud), "true" if loud else "false"


@program((X, Layer()), breaks=None)
def test_break_in_module_forward(x: Tensor, layer: Layer) -> Any:
    return layer(x) + layer(x * 2)


@program((X,), breaks=None)
def test_tolist_and_numpy(x: Tensor) -> Any:
    rows = x.tolist()
    as_array = x.numpy()
    return rows, as_array, float(as_array.sum()) + x, x.numpy() * 2


@program((X,), breaks=None)
def test_numpy_in_the_middle(x: Tensor) -> Any:
    y = x + 1
    a = np.clip(y.numpy(), 0, 3) + np.arange(3)
    return torch.from_numpy(a) * 2, a.dtype


@program((X,), breaks=None)
def test_data_dependent_shapes(x: Tensor) -> Any:
    picked = x[x > 2]
    where = (x > 2).nonzero()
    return (
        picked * 2,
        where.shape,
        picked.numel(),
        torch.unique(x).sum(),
        torch.masked_select(x, x > 1),
    )


@program((X,), breaks=None)
def test_int_of_tensor_as_index_and_range(x: Tensor) -> Any:
    n = int(x.max())
    total = 0
    for i in range(n):
        total += i
    return x + total, [0, 1, 2, 3, 4, 5][x.argmax()], torch.zeros(int(x[0, 1].item()))


@program((X,), breaks=None)
def test_format_tensor(x: Tensor) -> Any:
    return f"{x.sum():.2f}", str(x[0, 0]), repr(x + 1), x * 2


@program((X,), breaks=None)
def test_python_random(x: Tensor) -> Any:
    a, b = random.random(), random.randint(1, 6)
    order = [1, 2, 3]
    random.shuffle(order)
    return x * a + b, order, np.random.rand(2)


@program((X,), breaks=None)
def test_time_and_warnings(x: Tensor) -> Any:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("quiet", stacklevel=1)
        y = x + 1
    return y, time.perf_counter() >= start


@program((LEAF,), breaks=None)
def test_backward_inside(x: Tensor) -> Any:
    w = x.detach().clone().requires_grad_()
    loss = (w * w).sum()
    loss.backward()
    return w.grad, loss.detach()


@program((LEAF,), breaks=None)
def test_autograd_grad_inside(x: Tensor) -> Any:
    y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.sum(), y


@program((X,), breaks=None)
def test_disabled_function(x: Tensor) -> Any:
    def quiet(t: Tensor) -> Tensor:
        return t * 3

    return torch.compiler.disable(quiet)(x + 1) - 1


@program((X,), breaks=None)
def test_explicit_graph_break(x: Tensor) -> Any:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@scenario(breaks=None)
def test_long_loop_with_break() -> Scenario:
    seen: list[int] = []
    keep = torch.compiler.disable(seen.append)

    def function(x: Tensor) -> Tensor:
        for i in range(2_000):
            keep(i)
        return x + len(seen)

    return Scenario(function, [call(X.clone())], after=lambda i, r: len(seen))


@scenario(breaks=None)
def test_effects_on_both_sides_of_a_break() -> Scenario:
    log: list[Any] = []
    box = {"n": 0}

    def function(x: Tensor) -> Any:
        log.append("before")
        box["n"] += 1
        fresh = [x]
        print("n is", box["n"], len(log))
        log.append(fresh)
        fresh.append(x + 1)
        box["n"] += 1
        return fresh, box

    return Scenario(function, [call(X.clone())] * 2)


@scenario(breaks=None)
def test_closure_cell_changed_across_a_break() -> Scenario:
    def function(x: Tensor) -> Any:
        n = 1

        def add(by: int) -> int:
            nonlocal n
            n += by
            return n

        add(1)
        print("n", n)
        add(10)
        y = x * n
        print("now", n)
        return y, n, add

    return Scenario(function, [call(X.clone())] * 2, after=lambda i, r: r[2](5))


@program((X.clone(),), breaks=None)
def test_inplace_on_both_sides_of_a_break(x: Tensor) -> Any:
    view = x[0]
    x.add_(1)
    print(view.sum())
    view.mul_(2)
    print(x.sum())
    return x, view


@program((X,), breaks=None)
def test_delete_local_across_break(x: Tensor) -> Any:
    y = x + 1
    del x
    print("gone")
    try:
        return x  # noqa: F821
    except UnboundLocalError:
        return y


@program((X,), breaks=None)
def test_locals_and_globals_functions(x: Tensor) -> Any:
    n = 3
    names = sorted(locals())
    return names, "talk" in globals(), eval("n + 1"), x + n


@program((X,), breaks=None)
def test_import_inside(x: Tensor) -> Any:
    import math
    from collections import OrderedDict as Ordered

    return x * math.pi, Ordered(a=1)


@program((X,), breaks=None)
def test_async_function_made(x: Tensor) -> Any:
    async def later() -> Tensor:
        return x + 1

    made = later()
    try:
        made.send(None)
    except StopIteration as stop:
        return stop.value


@program((X,), breaks=None)
def test_exception_groups(x: Tensor) -> Any:
    seen = []
    try:
        raise ExceptionGroup("many", [ValueError("v"), KeyError("k")])
    except* ValueError as group:
        seen.append(len(group.exceptions))
    except* KeyError as group:
        seen.append(str(group.exceptions[0]))
    return x, seen


@program((X,), breaks=None)
def test_object_identity_kept_across_break(x: Tensor) -> Any:
    shared: list[Any] = [x]
    holder = {"a": shared, "b": shared}
    print(len(holder))
    holder["a"].append(1)
    return holder, shared, holder["b"] is shared


@program((X,), breaks=None)
def test_iterator_crosses_break(x: Tensor) -> Any:
    it = iter([1, 2, 3, 4])
    pairs = zip("abcd", it, strict=False)
    first = next(pairs)
    print(first)
    return x + next(it), list(pairs), enumerate([1]).__next__()


@program((X,), breaks=None)
def test_generator_crosses_break(x: Tensor) -> Any:
    def steps() -> Any:
        got = yield 1
        print("got", got)
        yield got

    g = steps()
    first = next(g)
    print("between")
    return x + first, g.send(7), next(g, "over")


@program((X,), breaks=None)
def test_context_manager_object_crosses_break(x: Tensor) -> Any:
    context = torch.no_grad()
    print("made")
    with context:
        y = x + 1
        print(torch.is_grad_enabled())
    return y, torch.is_grad_enabled()


@program(
    call(X.clone(), torch.tensor([1])),
    call(X.clone(), torch.tensor([9])),
    breaks=None,
    backward=False,
)
def test_operation_that_fails_after_inplace_effects(x: Tensor, at: Tensor) -> Any:
    x.add_(1)
    noise = torch.rand(1)
    try:
        y = x[at] * 2
    except IndexError:
        y = x * 3
    return y, x, noise


@program(call([], torch.tensor([1])), call([], torch.tensor([9])), breaks=None)
def test_operation_that_fails_after_python_effects(log: list[Any], at: Tensor) -> Any:
    log.append("before")
    y = torch.arange(3.0)[at] + 1
    log.append("after")
    return y


@program((torch.tensor([9]),), breaks=None)
def test_operation_that_fails_in_a_callee_within_finally(at: Tensor) -> Any:
    log = []

    def pick(x: Tensor) -> Any:
        try:
            return x[at]
        finally:
            log.append("finally")

    try:
        return pick(torch.arange(3.0) + 1), log
    except IndexError as error:
        return str(error), log


@program((X,), breaks=None)
def test_generator_dropped_while_suspended(x: Tensor) -> Any:
    def careful() -> Iterator[int]:
        try:
            yield 1
        finally:
            print("closed for want of references")

    one = next(careful())
    print("after the first")
    kept = careful()
    return x + one + next(kept)


def stack_seen() -> list[str]:
    """The innermost frames; those of a hook that cannot hide its own are left out."""
    entries: list[traceback.FrameSummary] = traceback.extract_stack()
    names = [entry.name for entry in entries]
    if not choose_hook().capabilities.tidies_tracebacks:
        names = [entry.name for entry in entries if not entry.filename.startswith(OURS)]
        names = [name for name, _ in itertools.groupby(names)]  # a trampoline has its name
    return names[-3:]


@program((X, []), breaks=None)
def test_frames_that_are_looked_at(x: Tensor, log: list[Any]) -> Any:
    """All frames go on as plain Python, each called by the one that waits for it."""

    def inner(y: Tensor) -> Tensor:
        y = y + 1
        frame = sys._getframe()
        assert frame.f_back is not None
        log.append((frame.f_lineno, sorted(frame.f_locals), frame.f_back.f_lineno))
        later = 3
        log.append((frame.f_lineno, sorted(frame.f_locals), sorted(frame.f_back.f_locals), later))
        return y * 2

    try:
        raise KeyError
    except KeyError:
        x = inner(x + 1) * 3
        log.append((stack_seen(), sys.exc_info()[0]))
    return x


@program((X, 1), (X, 2), breaks=None)
def test_variables_that_exec_makes(x: Tensor, n: int) -> Any:
    x = x + n
    exec("made = n + 1")
    seen = sorted(locals())
    return x, seen, locals()["made"], eval("made * 2")


@program((X,), breaks=1)
def test_class_statement_costs_one_break(x: Tensor) -> Any:
    y = x + 1

    class Made:
        kept = y * 2

    return Made.kept + y, Made.__qualname__


@program((X, "a"), (X, None), (X, 2.5), breaks=None)
def test_what_is_only_asked_whether_it_is_none(x: Tensor, name: Any) -> Any:
    if name is not None:
        print("given")
        return x + 1, name
    return x - 1, name

"""Loops, comprehensions, exceptions, `with`, recursion: control flow that stays in one graph."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
LEAF = torch.arange(3.0).requires_grad_()


class Trace:
    """A context manager that notes what happens to it."""

    def __init__(self, log: list[Any], swallow: bool = False) -> None:
        self.log, self.swallow = log, swallow

    def __enter__(self) -> "Trace":
        self.log.append("enter")
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.log.append(("exit", kind.__name__ if kind else None, str(value)))
        return self.swallow


class Custom(Exception):
    """An exception with state of its own."""

    def __init__(self, code: int, detail: Any) -> None:
        super().__init__(f"code {code}")
        self.code, self.detail = code, detail


@contextlib.contextmanager
def doubled(log: list[Any]) -> Iterator[int]:
    log.append("in")
    try:
        yield 2
    except KeyError:
        log.append("caught")
    finally:
        log.append("out")


def fibonacci(n: int, x: Tensor) -> Tensor:
    return x if n < 2 else fibonacci(n - 1, x) + fibonacci(n - 2, x)


def is_even(n: int) -> bool:
    return n == 0 or is_odd(n - 1)


def is_odd(n: int) -> bool:
    return n != 0 and is_even(n - 1)


@program(call(X, 3), call(X, 0), call(X, 5))
def test_for_over_range(x: Tensor, n: int) -> Any:
    for i in range(n):
        x = x + i
    else:
        x = x * 2
    return x


@program((X, 7))
def test_break_continue_else(x: Tensor, n: int) -> Any:
    seen = []
    for i in range(100):
        if i % 2:
            continue
        if i > n:
            break
        seen.append(i)
        x = x + i
    else:
        seen.append(-1)
    return x, seen


@program((X, 5))
def test_while_loops(x: Tensor, n: int) -> Any:
    steps = 0
    while n:
        n -= 1
        while True:
            steps += 1
            if steps % 3 == 0:
                break
            x = x + 1
    else:
        steps += 100
    return x, steps


@program((X,))
def test_loop_over_tensor_rows(x: Tensor) -> Any:
    out = []
    for row in x:
        out.append(row.sum())
    for i, row in enumerate(x.T):
        out.append(row[0] * i)
    return torch.stack(out)


@program((X,))
def test_comprehensions(x: Tensor) -> Any:
    k = 2
    squares = [i * i * k for i in range(4) if i != 2]
    pairs = {(i, j) for i in range(2) for j in range(i + 1)}
    table = {i: [j + k for j in range(i)] for i in range(3)}
    parts = [x[i] * j for i in range(2) for j in (1, 2)]
    return squares, pairs, table, torch.stack(parts), sum(i for i in range(5))


@program((X,))
def test_walrus(x: Tensor) -> Any:
    if (n := x.shape[0]) > 1:
        x = x * n
    values = [last := i * 2 for i in range(3)]
    while (n := n + 1) < 6:
        x = x + n
    return x, n, values, last


@program((X,))
def test_closures_over_loop_variables(x: Tensor) -> Any:
    late = [lambda: i for i in range(3)]  # noqa: B023
    early = [lambda i=i: i for i in range(3)]
    return x + sum(f() for f in late), [f() for f in late], [f() for f in early]


@program(call(X, 0), call(X, 1), call(X, 2), call(X, 3))
def test_try_except_else_finally(x: Tensor, n: int) -> Any:
    log = []
    try:
        if n == 1:
            raise KeyError("one")
        if n == 2:
            raise Custom(2, [x])
        x = x + 1
    except KeyError as error:
        log.append(repr(error))
        x = x * 2
    except (Custom, ValueError) as error:
        log.append(error.args)
        x = x - error.code  # type: ignore[union-attr]
    else:
        log.append("else")
    finally:
        log.append("finally")
        x = x * 3
    return x, log


@program(call(X, True), call(X, False))
def test_exception_leaves_the_function(x: Tensor, bad: bool) -> Any:
    y = x + 1
    if bad:
        raise Custom(7, "detail")
    return y


@program((X, []))
def test_effects_before_exception_are_kept(x: Tensor, log: list[Any]) -> Any:
    log.append(x + 1)
    log.append("second")
    raise ValueError("after effects")


@program((X,))
def test_exception_chaining(x: Tensor) -> Any:
    try:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("wrapped") from error
    except ValueError as error:
        return x + 1, error, error.__cause__, error.__suppress_context__


@program((X,))
def test_exception_context_and_reraise(x: Tensor) -> Any:
    log: list[Any] = []
    try:
        try:
            raise KeyError("first")
        except KeyError:
            log.append("handling")
            raise
        finally:
            log.append("finally")
    except KeyError as error:
        log.append(error)
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise TypeError("b")  # noqa: B904
    except TypeError as error:
        log.append(error.__context__)
    return x, log


@program((X,))
def test_return_in_finally(x: Tensor) -> Any:
    def inner(n: int) -> Any:
        for _ in range(3):
            try:
                if n == 0:
                    return "try"
                if n == 1:
                    raise ValueError
                if n == 2:
                    continue
            except ValueError:
                return "except"
            finally:
                if n == 3:
                    return "finally"  # noqa: B012
                n += 1
        return "end"

    return x + 1, [inner(n) for n in range(4)]


@program((X,))
def test_builtin_errors(x: Tensor) -> Any:
    found = []
    tries: list[Any] = [
        lambda: 1 // 0,
        lambda: [1][5],
        lambda: {}["k"],
        lambda: int("no"),
        lambda: (1).missing,  # type: ignore[attr-defined]
        lambda: len(3),  # type: ignore[arg-type]
        lambda: "a" + 1,  # type: ignore[operator]
        lambda: next(iter([])),
        lambda: [1].index(2),
        lambda: undefined_name,  # type: ignore[name-defined]  # noqa: F821
    ]
    for attempt in tries:
        try:
            attempt()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return x + len(found), found


@program((X,))
def test_unbound_local(x: Tensor) -> Any:
    try:
        if x.dim() == 7:
            late = 1
        return late + x
    except UnboundLocalError as error:
        return str(error), x * 2


@program((X,))
def test_assert(x: Tensor) -> Any:
    assert x.shape[0] == 2, "never"
    try:
        assert x.shape[0] == 3, f"rows: {x.shape[0]}"
    except AssertionError as error:
        return x + 1, error.args
    return x


@program((X,))
def test_with_user_context_managers(x: Tensor) -> Any:
    log: list[Any] = []
    with Trace(log) as first, Trace(log, swallow=True) as second:
        log.append(first is second)
        x = x + 1
        raise ValueError("inside")
    log.append("after")
    with doubled(log) as factor:
        x = x * factor
        raise KeyError("k")
    with contextlib.suppress(ZeroDivisionError):
        x = x + 1 / 0
    return x, log


@program((X,))
def test_return_inside_with(x: Tensor) -> Any:
    log: list[Any] = []

    def inner() -> Any:
        with Trace(log):
            for i in range(3):
                with doubled(log):
                    if i == 1:
                        return x * i
        return None

    return inner(), log


@program((X,))
def test_exit_stack_and_nullcontext(x: Tensor) -> Any:
    log: list[Any] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(Trace(log))
        stack.callback(log.append, "callback")
        with contextlib.nullcontext(5) as five:
            x = x + five
    return x, log


@program((LEAF,))
def test_no_grad(x: Tensor) -> Any:
    y = x * 2
    with torch.no_grad():
        z = y * 3
        with torch.enable_grad():
            w = y * 4
        inside = torch.is_grad_enabled()
    return y, z, w, inside, torch.is_grad_enabled()


@program((LEAF,))
def test_set_grad_enabled_both_ways(x: Tensor) -> Any:
    with torch.set_grad_enabled(False):
        a = x * 2
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    b = x * 3
    torch._C._set_grad_enabled(True)
    return a, b, before


@program((LEAF,))
def test_no_grad_decorator(x: Tensor) -> Any:
    @torch.no_grad()
    def quiet(t: Tensor) -> Tensor:
        return t * 2

    return quiet(x), x * 3


@program((X,))
def test_inference_mode(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x + 1
        mode = torch.is_inference_mode_enabled()
    return y.sum(), y.is_inference(), mode


@program((X,))
def test_autocast(x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        with torch.autocast("cpu", enabled=False):
            z = x @ x.T
    return y, z, x @ x.T


@program((X,), breaks=None)
def test_default_dtype_changed_inside(x: Tensor) -> Any:
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2)
    torch.set_default_dtype(torch.float32)
    return y, torch.ones(2), x + 1


@program((X,))
def test_recursion(x: Tensor) -> Any:
    def depth(tree: Any) -> int:
        return 0 if tree is None else 1 + max(depth(tree[0]), depth(tree[1]))

    return fibonacci(6, x), is_even(10), depth(((None, None), ((None, None), None)))


@program(call(X, 2), call(X, "two"), call(X, None), call(X, [1, 3]))
def test_match_statement(x: Tensor, value: Any) -> Any:
    match value:
        case 0 | 1 | 2:
            return x + value
        case str() as text if len(text) == 3:
            return x, text
        case [first, *rest]:
            return x * first, rest
        case None:
            return None
        case _:
            return "other"


@program((X,))
def test_match_classes_and_mappings(x: Tensor) -> Any:
    found = []
    for value in ({"kind": "a", "n": 1, "m": 2}, (1, (2, 3)), Custom(4, "d"), 2.5):
        match value:
            case {"kind": "a", "n": n, **rest}:
                found.append((n, rest))
            case (a, (b, c)):
                found.append((a, b, c))
            case Custom(code=code):
                found.append((code,))
            case float():
                found.append(("float",))
    return x, found


@program((X,))
def test_delete_names(x: Tensor) -> Any:
    y = x + 1
    del x
    try:
        return x  # noqa: F821
    except UnboundLocalError:
        return y


@program((X,))
def test_star_exception_types_in_tuple_variable(x: Tensor) -> Any:
    kinds = (KeyError, IndexError)
    try:
        raise IndexError("i")
    except kinds as error:
        return x, str(error), isinstance(error, LookupError)


@program((X,), breaks=None)
def test_torch_error_caught(x: Tensor) -> Any:
    try:
        return x @ x
    except RuntimeError as error:
        return "mat" in str(error), x.sum()


@program((X,), breaks=None)
def test_torch_error_leaves(x: Tensor) -> Any:
    y = x + 1
    return y.reshape(7, 7)


@scenario()
def test_exception_from_user_callable_between_calls() -> Scenario:
    state = {"bad": False}

    def check(x: Tensor) -> Tensor:
        if state["bad"]:
            raise LookupError("told to")
        return x + 1

    def before(index: int) -> None:
        state["bad"] = index == 1

    return Scenario(lambda x: check(x) * 2, [call(X.clone())] * 3, before=before)


@program(call(X, "a"), call(X, "b"), call(X, "z"))
def test_dispatch_table_of_functions(x: Tensor, name: str) -> Any:
    table = {"a": torch.sin, "b": lambda t: t + 1, "c": Tensor.cos}
    return table.get(name, torch.neg)(x)


@program((X,))
def test_nested_functions_three_deep(x: Tensor) -> Any:
    a = 1

    def outer(b: int) -> Any:
        def middle(c: int) -> Any:
            def inner(d: int) -> Any:
                return x * a + b + c + d

            return inner

        return middle

    return outer(2)(3)(4)


@program((X,), breaks=None)
def test_recursion_without_end(x: Tensor) -> Any:
    """Steps behind breaks have the room that the user's frames have; what is ours has its own."""

    def deeper(y: Tensor) -> Any:
        try:
            return deeper(y)
        except ValueError:
            return -1

    found = []
    for _ in range(2):
        try:
            deeper(x)
        except RecursionError as error:
            found.append(type(error))
    return x + 1, found

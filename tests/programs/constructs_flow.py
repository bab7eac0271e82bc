"""Marked programs: loops, exceptions, `with`.

Each takes a tensor, a list that notes what happens, and a number; `S(log, k)` marks a place.
"""

import contextlib
import itertools
import sys
import traceback

import torch
from construct_parts import Counted, Manager, S, iter_of  # type: ignore[import-not-found]


def for_range(x, log, n):
    for i in range(3):
        x = x + 1
        S(log, 0)
        x = x * (i + 1)
    else:
        S(log, 1)
    return x - S(log, 2)


def for_else_broken(x, log, n):
    for i in range(4):
        if i == 2:
            S(log, 0)
            break
        x = x + S(log, 1)
    else:
        x = x * S(log, 2)
    return x


def iterator_expression(x, log, n):
    for i in [S(log, 0), S(log, 1), 5]:
        x = x + i
    return x * 2


def while_condition(x, log, n):
    i = 0
    while i < 3 and S(log, 0) == 0:
        i += 1
        x = x + i
        if i == 2 and S(log, 1):
            continue
        x = x * 2
    else:
        x = x - S(log, 2)
    return x


def over_list(x, log, n):
    items = [x, x + 1, x * 2]
    for y in items:
        x = x + y
        S(log, 0)
        if len(items) < 4:
            items.append(y - 1)
    return x, items


def over_dict(x, log, n):
    d = {"a": x, "b": x + 1}
    for key in d:
        x = x + d[key]
        S(log, 0)
    for key, value in d.items():
        x = x + value
        S(log, 1)
    for value in d.values():
        x = x * 2 + value
        S(log, 2)
    return x, key


def over_zip(x, log, n):
    for i, y in zip(range(3), [x, x + 1, x + 2]):
        x = x + y * i
        S(log, 0)
    for i, (a, b) in enumerate(zip((1, 2), "ab", strict=True), 3):
        x = x + a
        S(log, 1)
        log.append((i, b))
    return x


def over_map_filter(x, log, n):
    for y in map(lambda v: v + S(log, 0), [x, x * 2]):
        x = x + y
        S(log, 1)
    for k in filter(lambda v: v % 2 and S(log, 2), range(5)):
        x = x + k
        S(log, 3)
    return x


def over_reversed_and_set(x, log, n):
    for i in reversed([1, 2, 3]):
        x = x + i
        S(log, 0)
    for i in {1, 2}:
        x = x * i
        S(log, 1)
    for i in reversed(range(3)):
        x = x - i
        S(log, 2)
    for c in "abc":
        S(log, 3)
        log.append(c)
    return x


def over_itertools(x, log, n):
    for a, b in itertools.product((1, 2), (3,)):
        x = x + a * b
        S(log, 0)
    for k in itertools.islice(itertools.count(2), 2):
        x = x + k
        S(log, 1)
    for y in itertools.chain([x], (x + 1,)):
        x = x + y
        S(log, 2)
    return x


def over_user_iterator(x, log, n):
    for i in Counted(log, 2):
        x = x + i
        S(log, 0)
    return x


def nested_loops(x, log, n):
    for i in range(2):
        for j in (1, 2, 3):
            if j == 2:
                S(log, 0)
                continue
            x = x + j
            if i:
                S(log, 1)
                break
        else:
            S(log, 2)
    return x


def iterator_used_twice(x, log, n):
    it = iter([1, 2, 3, 4, 5])
    x = x + next(it)
    S(log, 0)
    for i in it:
        x = x + i
        S(log, 1)
        if i == 3:
            break
    x = x * 2
    S(log, 2)
    return x + next(it), list(it), next(it, "end")


def iterator_from_outside(x, log, n):
    it = Counted(log, 1)
    data = iter((x, x + 1, x + 2))
    x = x + next(data)
    S(log, 0)
    x = x + sum(data)
    return x, list(it)


def unpacking(x, log, n):
    a, *b = (x + 1, S(log, 0), *[S(log, 1)])
    (c, d), e = (a, S(log, 2)), x
    return c + d + e, b


def try_finally(x, log, n):
    try:
        x = x + 1
        S(log, 0)
        x = x * 2
    finally:
        log.append("finally")
        S(log, 1)
        x = x - 1
        log.append(x)
    return x + S(log, 2)


def try_except(x, log, n):
    try:
        x = x + 1
        S(log, 0)
    except ValueError as error:
        log.append(str(error))
        x = x * 3
        S(log, 1)
    except TypeError:
        S(log, 2)
    else:
        x = x - S(log, 3)
    finally:
        S(log, 4)
    return x


def raise_and_handle(x, log, n):
    try:
        x = x + S(log, 0)
        raise KeyError("k", x.shape)
    except KeyError as error:
        S(log, 1)
        log.append((error.args, sys.exc_info()[1] is error))
        try:
            S(log, 2)
            raise TypeError("inner")
        except TypeError as inner:
            S(log, 3)
            log.append((inner.__context__ is error, sys.exc_info()[0].__name__))
        log.append(sys.exc_info()[0].__name__)
        x = x + 1
    log.append(sys.exc_info()[0])
    return x


def reraise(x, log, n):
    try:
        try:
            x = x + S(log, 0)
            {}["missing"]
        except KeyError:
            x = x * 2
            S(log, 1)
            raise
        finally:
            S(log, 2)
            log.append(x)
    except KeyError as error:
        S(log, 3)
        log.append(error.__traceback__ is not None)
    return x


def raise_from(x, log, n):
    try:
        try:
            raise KeyError("a")
        except KeyError as error:
            S(log, 0)
            raise RuntimeError("b") from error
    except RuntimeError as error:
        S(log, 1)
        log.append((type(error.__cause__).__name__, error.__suppress_context__))
        x = x + 1
        raise TypeError("leaves") from None


def return_in_finally(x, log, n):
    def inner(y):
        try:
            S(log, 0)
            return y + 1
        finally:
            S(log, 1)
            if n:
                return y + 2

    return inner(x) + inner(x * 2)


def break_in_finally(x, log, n):
    for i in range(3):
        try:
            x = x + i
            S(log, 0)
            if i == 1:
                raise IndexError(i)
        except IndexError:
            S(log, 1)
            continue
        finally:
            S(log, 2)
            if i == 1 and n:
                break
        x = x * 2
    return x


def return_in_try(x, log, n):
    for i in range(3):
        try:
            x = x + i
            if i == 1:
                return x + S(log, 0)
        finally:
            log.append(i)
            S(log, 1)
    return None


def except_star(x, log, n):
    try:
        x = x + S(log, 0)
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* ValueError as group:
        x = x * 2
        S(log, 1)
        log.append(group.exceptions[0].args)
    except* (TypeError, KeyError) as group:
        S(log, 2)
        log.append(len(group.exceptions))
    else:
        log.append("no")
    finally:
        S(log, 3)
    return x


def except_star_rest(x, log, n):
    try:
        try:
            x = x + 1
            raise ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [OSError(2)])])
        except* ValueError:
            S(log, 0)
            if n:
                raise IndexError("in handler")
    except* OSError as rest:
        S(log, 1)
        log.append(str(rest.exceptions))
    except* IndexError:
        S(log, 2)
        log.append("index")
    return x * 2


def deep_exception(x, log, n):
    def low(y):
        try:
            S(log, 0)
            return y["no"] + y
        finally:
            S(log, 1)
            log.append("low")

    def middle(y):
        try:
            return low({})
        except ZeroDivisionError:
            return y
        finally:
            S(log, 2)
            log.append("middle")

    try:
        x = middle(x + 1)
    except KeyError as error:
        S(log, 3)
        log.append([f.name for f in traceback.extract_tb(error.__traceback__)])
    return x * 2


def exception_kept(x, log, n):
    kept = None
    try:
        S(log, 0)
        raise LookupError("kept")
    except LookupError as error:
        kept = error
    S(log, 1)
    x = x + 1
    log.append((str(kept), kept.__traceback__ is not None))
    try:
        raise kept
    except LookupError as again:
        S(log, 2)
        log.append(again is kept)
    return x


def nested_with(x, log, n):
    with Manager(log, "a") as a, Manager(log, "b"):
        x = x + 1
        S(log, 0)
        with Manager(log, "c", swallow=True):
            x = x * 2
            S(log, 1)
            raise ValueError("swallowed")
        S(log, 2)
        x = x - 1
    return x, a.name, S(log, 3)


def with_return(x, log, n):
    for i in range(3):
        with Manager(log, i):
            x = x + i
            S(log, 0)
            if i == 1:
                return x * S(log, 1)


def with_loop_control(x, log, n):
    for i in range(3):
        with Manager(log, i, swallow=True):
            x = x + 1
            if i == 0:
                S(log, 0)
                continue
            S(log, 1)
            break
    return x


def with_torch(x, log, n):
    x = x.clone().requires_grad_()
    with torch.no_grad():
        y = x + 1
        S(log, 0)
        with torch.enable_grad():
            z = x * 2
            S(log, 1)
        log.append(torch.is_grad_enabled())
    log.append(torch.is_grad_enabled())
    return y.requires_grad, z.requires_grad, (x + S(log, 2)).detach()


def contextmanager(x, log, n):
    @contextlib.contextmanager
    def manager(name):
        log.append(f"enter {name}")
        S(log, 0)
        try:
            yield name
        except ValueError as error:
            log.append(str(error))
            S(log, 1)
        finally:
            S(log, 2)
            log.append(f"exit {name}")

    with manager("a"):
        x = x + 1
        S(log, 3)
        with manager("b"):
            x = x * 2
            raise ValueError("from the body")
    return x


def exit_stack(x, log, n):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(Manager(log, "a", swallow=True))
        S(log, 0)
        stack.enter_context(Manager(log, "b"))
        x = x + 1
        S(log, 1)
        raise ValueError("into the stack")
    S(log, 2)
    return x


def suppress(x, log, n):
    with contextlib.suppress(KeyError):
        x = x + 1
        S(log, 0)
        raise KeyError
    with contextlib.closing(iter_of(x, log)) as it:
        x = x + next(it)
        S(log, 1)
    with contextlib.nullcontext(5) as five:
        S(log, 2)
    return x + five

"""Marked programs: generators, comprehensions, patterns, scopes, frames, coroutines.

Each takes a tensor, a list that notes what happens, and a number; `S(log, k)` marks a place.
"""

import sys
import warnings
from collections import deque
from functools import partial, reduce

from construct_parts import Async, Base, Manager, Pair, S, agen  # type: ignore[import-not-found]


def comprehension(x, log, n):
    a = [x + i for i in range(3) if S(log, 0) == 0]
    b = {k: S(log, 1) + v for k, v in enumerate("ab" if 0 else (1, 2))}
    c = {S(log, 2) for _ in range(2)}
    return a, b, c, [[i * j + S(log, 3) for i in (1, 2)] for j in (1, 2)]


def generator_expression(x, log, n):
    g = (x + i + S(log, 0) for i in range(3))
    first = next(g)
    S(log, 1)
    rest = list(g)
    total = sum(y + S(log, 2) for y in rest)
    return first + total


def generator(x, log, n):
    def numbers(k):
        for i in range(k):
            S(log, 0)
            got = yield x + i
            log.append(got)
        S(log, 1)
        return "done"

    for y in numbers(2):
        x = x + y
        S(log, 2)
    return x


def generator_send(x, log, n):
    def echo():
        value = yield "ready"
        while True:
            S(log, 0)
            try:
                value = yield value + x
            except KeyError as error:
                S(log, 1)
                value = yield error.args

    g = echo()
    a = next(g)
    S(log, 2)
    b = g.send(x * 2)
    S(log, 3)
    c = g.throw(KeyError("thrown"))
    d = g.send(4)
    g.close()
    return a, b, c, d


def generator_close(x, log, n):
    def careful():
        try:
            yield x
            S(log, 0)
            yield x + 1
        except GeneratorExit:
            S(log, 1)
            log.append("exit")
            raise
        finally:
            S(log, 2)
            log.append("finally")

    g = careful()
    y = next(g)
    S(log, 3)
    g.close()
    log.append("after close")
    return y * 2


def yield_from(x, log, n):
    def inner():
        got = yield x
        S(log, 0)
        log.append(got)
        yield x + 1
        return "inner result"

    def outer():
        S(log, 1)
        result = yield from inner()
        S(log, 2)
        log.append(result)
        yield from [x * 2, S(log, 3)]

    g = outer()
    a = next(g)
    b = g.send("sent")
    S(log, 4)
    return a, b, list(g)


def generator_raises(x, log, n):
    def failing():
        yield x
        S(log, 0)
        raise KeyError("inside")

    g = failing()
    out = [next(g)]
    S(log, 1)
    try:
        out.append(next(g))
    except KeyError as error:
        S(log, 2)
        log.append((str(error), g.gi_frame))
    return out, next(g, None)


def generator_escapes(x, log, n):
    def numbers():
        for i in range(4):
            S(log, 0)
            yield x + i

    g = numbers()
    x = x + next(g)
    S(log, 1)
    return x, g, (lambda: list(g))()[0:1]


def generator_returned(x, log, n):
    def numbers():
        try:
            yield x + 1
            S(log, 0)
            yield x + 2
        finally:
            log.append("end")

    g = numbers()
    next(g)
    S(log, 1)
    kept = [g]
    x = x * 2
    return x + sum(kept[0])


def generator_in_generator(x, log, n):
    def low(k):
        for i in range(k):
            S(log, 0)
            yield i

    def high(k):
        for i in low(k):
            S(log, 1)
            for j in low(2):
                yield x + i * j

    return sum(high(2)) + S(log, 2)


def generator_with(x, log, n):
    def managed():
        with Manager(log, "g"):
            yield x
            S(log, 0)
            yield x * 2

    out = []
    for y in managed():
        out.append(y + 1)
        S(log, 1)
    for y in managed():
        S(log, 2)
        break
    log.append("left")
    return out


def matching(x, log, n):
    out = []
    for subject in (1, [1, 2, 3], {"k": x, "z": 2}, Pair(x, 4), "text", (4, 5)):
        match subject:
            case int() as number if S(log, 0) == 0:
                out.append(number)
            case [first, *rest]:
                S(log, 1)
                out.append((first, rest))
            case {"k": value, **others}:
                S(log, 2)
                out.append((value + 1, others))
            case Pair(left, right):
                S(log, 3)
                out.append(left + right)
            case str(text) | bytes(text):
                S(log, 4)
                out.append(text)
            case _:
                out.append(None)
    return out


def recursion(x, log, n):
    def fall(y, depth):
        y = y + depth
        if depth == 0:
            return y * S(log, 0)
        S(log, 1)
        y = fall(y, depth - 1) + 1
        if depth == 2:
            S(log, 2)
        return y * 2

    return fall(x, 3)


def mutual_recursion(x, log, n):
    def even(y, k):
        S(log, 0)
        return y if k == 0 else odd(y + 1, k - 1) * 2

    def odd(y, k):
        S(log, 1)
        return y - 1 if k == 0 else even(y + 2, k - 1) + 1

    return even(x, 4)


def super_call(x, log, n):
    class Derived(Base):
        def step(self, x, k):
            x = super().step(x, k)
            S(log, 0)
            log.append(__class__.__name__)
            x = super().step(x, k + 1)
            return x * 2

        @classmethod
        def made(cls, log):
            S(log, 1)
            return cls(log)

    return Derived.made(log).step(x, 1) + S(log, 2)


def class_body(x, log, n):
    base = x + 1

    class Made:
        kept = base * 2
        S(log, 0)
        names = [k for k in range(2)]
        total = kept + S(log, 1)
        for i in range(2):
            total = total + i

        def method(self):
            return self.total + S(log, 2)

    return Made().method(), Made.names, Made.__qualname__, Made.i


def closures(x, log, n):
    count = 0
    made = []

    def bump(by):
        nonlocal count
        count += by
        S(log, 0)
        return count

    for i in range(2):
        made.append(lambda y, i=i: y + i + count)
        S(log, 1)
    x = x + bump(2)
    S(log, 2)
    count += 1
    return [f(x) for f in made], bump(1)


def scope_functions(x, log, n):
    a, b = 1, x + 1
    names = sorted(locals())
    S(log, 0)
    c = a + 1
    seen = sorted(locals()), sorted(vars()), dir()
    S(log, 1)
    value = eval("a + c + n")
    space = {"a": a}
    exec("d = a + 5", space)
    log.append((names, seen, value, space["d"], "torch" in globals()))
    return b * value


def frames(x, log, n):
    x = x + 1
    S(log, 0)
    frame = sys._getframe()
    log.append((frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)))

    def callee():
        S(log, 1)
        return sys._getframe(1).f_code.co_name

    log.append(callee())
    return x * 2


def warning(x, log, n):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        S(log, 0)
        warnings.warn("first", UserWarning, stacklevel=1)

        def callee():
            S(log, 1)
            warnings.warn("second", UserWarning, stacklevel=2)

        callee()
    log.append([(str(w.message), w.lineno, w.filename == __file__) for w in caught])
    return x + S(log, 2)


def lambdas_and_partials(x, log, n):
    add = partial(lambda a, b: a + b + S(log, 0), 1)
    total = reduce(lambda a, b: a + b + S(log, 1), [x, x + 1, x + 2])
    ordered = sorted([3, 1, 2], key=lambda v: v + S(log, 2))
    return add(total), ordered, max((1, 5, 2), key=lambda v: -v * S(log, 3))


def walrus_and_conditions(x, log, n):
    if (y := x + S(log, 0)) is not None and S(log, 1):
        x = y
    z = x + 1 if S(log, 2) else x - 1
    return z * (S(log, 3) or 5), 1 < S(log, 4) < 5


def deletions(x, log, n):
    a = x + 1
    b = [1, 2, 3]
    del b[S(log, 1)]
    S(log, 0)
    y = a * 2
    del a
    S(log, 2)
    try:
        return a  # noqa: F821
    except UnboundLocalError as error:
        log.append(str(error))
        S(log, 3)
    return y, b


def queue(x, log, n):
    todo = deque([(x, 0)])
    out = []
    while todo:
        y, level = todo.popleft()
        S(log, 0)
        out.append(y + level)
        if level < 2:
            todo.append((y * 2, level + 1))
            S(log, 1)
    return out


def strings(x, log, n):
    text = f"{S(log, 0)}-{x.shape[0]!r:>5}-{S(log, 1):03d}"
    x = x + len(text)
    return x, "%s %s" % (text, S(log, 2)), text.format(1)


def augmented(x, log, n):
    d = {"k": [x, 2]}
    d["k"][S(log, 1)] += S(log, 2)
    d["k"][0] = d["k"][0] + S(log, 3)
    x = x.clone()
    x[S(log, 0)] += 5
    return d, x


def global_state(x, log, n):
    global COUNT
    COUNT = 1
    S(log, 0)
    COUNT += 1
    x = x + COUNT
    S(log, 1)
    del COUNT
    return x


def assertion(x, log, n):
    assert x.ndim == 2, S(log, 0)
    S(log, 1)
    try:
        assert n == 5, f"n is {n} {S(log, 2)}"
    except AssertionError as error:
        S(log, 3)
        log.append(str(error))
    return x + 1


def inplace(x, log, n):
    y = x.clone()
    y.add_(1)
    S(log, 0)
    y[0].mul_(2)
    S(log, 1)
    view = y.view(-1)
    view[1] = 7
    S(log, 2)
    x.sub_(1)
    return y, view


def stop_in_generator(x, log, n):
    def g():
        yield x
        S(log, 0)
        next(iter(()))

    try:
        return list(g())
    except RuntimeError as error:
        S(log, 1)
        log.append((str(error), type(error.__cause__).__name__))
    return x


def coroutine(x, log, n):
    class Ready:
        def __await__(self):
            S(log, 0)
            got = yield "waiting"
            return got

    async def inner(y):
        async with Async(log):
            got = await Ready()
            S(log, 1)
            return y + got

    async def outer():
        total = x
        async for y in agen(x, log):
            total = total + y
            S(log, 2)
        return total + await inner(x)

    c = outer()
    log.append(c.send(None))
    try:
        c.send(5)
    except StopIteration as stop:
        S(log, 3)
        return stop.value

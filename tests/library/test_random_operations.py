"""Random sequences of operations on containers do what they do in plain Python."""

import linecache
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings, strategies as st

import dynacap

LIST = [
    "a.append({n})",
    "a.extend([{n}, {m}])",
    "a.insert({n}, {m})",
    "out.append(a.pop({n}))",
    "a.remove({n})",
    "a.reverse()",
    "a.sort()",
    "del a[{n}]",
    "a[{n}] = {m}",
    "a[{n}:{m}] = [1, 2]",
    "a[::2]",
    "del a[{n}:{m}]",
    "out.append(a[{n}:{m}])",
    "a += [{n}]",
    "a *= 2",
    "out.append(a.index({n}))",
    "out.append(a.count({n}))",
    "out.append(a == sorted(a))",
    "out.append(a < [{n}])",
    "a = a + [{m}]",
    "out.append({n} in a)",
    "a = a.copy()",
]
DICT = [
    "a[{n}] = {m}",
    "del a[{n}]",
    "out.append(a.pop({n}))",
    "out.append(a.pop({n}, {m}))",
    "a.setdefault({n}, {m})",
    "a.update({{{n}: {m}}})",
    "out.append(a.popitem())",
    "out.append(list(a.items()))",
    "out.append({n} in a)",
    "out.append(list(a.keys() & {{{n}, {m}}}))",
    "a = a | {{{m}: 0}}",
    "a |= {{{n}: 1}}",
    "out.append(list(reversed(a)))",
    "out.append(a == dict(a))",
    "a = dict(a)",
    "out.append(a.get({n}))",
    "out.append(sorted(a.keys() - {{{n}}}))",
]
SET = [
    "a.add({n})",
    "a.discard({n})",
    "a.remove({n})",
    "out.append(a.pop())",
    "out.append(list(a))",
    "a |= {{{n}, {m}, 30}}",
    "a &= {{1, {n}, 16, 24}}",
    "a -= {{{n}}}",
    "a ^= {{{n}, {m}}}",
    "out.append(list(a | {{{n}, 40}}))",
    "out.append(list(a & {{0, 8, {n}}}))",
    "out.append(list(a - {{{n}}}))",
    "out.append(list(a ^ {{{n}, 17}}))",
    "a = a.copy()",
    "a = set(a)",
    "a = set(sorted(a))",
    "out.append(a <= {{1, {n}}})",
    "out.append(list(a.union([{n}], range(4))))",
    "a.update(range({n}))",
    "a.clear()",
    "out.append(list(frozenset(a)))",
    "out.append({n} in a)",
]
DEQUE = [
    "a.append({n})",
    "a.appendleft({n})",
    "out.append(a.pop())",
    "out.append(a.popleft())",
    "a.rotate({n})",
    "a.extend([{n}, {m}])",
    "a.extendleft([{n}, {m}])",
    "a.remove({n})",
    "a.reverse()",
    "a[{n}] = {m}",
    "del a[{n}]",
    "out.append(list(a))",
    "a.insert({n}, {m})",
    "out.append(a.count({n}))",
    "a += (1,)",
    "out.append(list(reversed(a)))",
    "out.append(a.maxlen)",
]
STARTS = {
    "list": ("[3, 1, 2]", LIST),
    "dict": ("{1: 2, 3: 4}", DICT),
    "set": ("{1, 9, 17}", SET),
    "deque": ("collections.deque([1, 2, 3], 5)", DEQUE),
}


def build(kind: str, steps: list[tuple[int, int, int]]) -> Callable[..., Any]:
    """A function that does the steps, each in a `try` of its own."""
    start, operations = STARTS[kind]
    lines = ["import collections", "def function(x):", "    out = []", f"    a = {start}"]
    for which, n, m in steps:
        text = operations[which % len(operations)].format(n=n, m=m)
        lines += ["    try:", f"        {text}", "    except Exception as error:"]
        lines += ["        out.append((type(error).__name__, str(error)))"]
    lines += ["    return out, a, list(a), x + len(out)"]
    source = "\n".join(lines)
    name = f"<random {kind} {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    return space["function"]  # type: ignore[no-any-return]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(
    st.sampled_from(sorted(STARTS)),
    st.lists(st.tuples(st.integers(0, 40), st.integers(-1, 9), st.integers(-2, 9)), max_size=12),
)
def test_same_as_plain_python(kind: str, steps: list[tuple[int, int, int]]) -> None:
    function = build(kind, steps)
    before = [dynacap.counters()[name] for name in ("breaks", "skipped")]
    compiled = dynacap.compile(function)
    for value in (torch.ones(2), torch.zeros(2)):
        expected, found = function(value), compiled(value)
        assert found[:3] == expected[:3]
        assert type(found[1]) is type(expected[1])
        assert torch.equal(found[3], expected[3])
    assert [dynacap.counters()[name] for name in ("breaks", "skipped")] == before

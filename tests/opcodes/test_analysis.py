"""What the stack holds, which locals are live, and where blocks begin."""

from collections.abc import Callable
from types import CodeType

import pytest

from dynacap.errors import InternalError, UnsupportedPython
from dynacap.opcodes import Code, decode
from dynacap.opcodes.analysis import Kind, live_locals, stacks
from dynacap.opcodes.versions import module, version


def compiled(source: str) -> CodeType:
    """Return the code of the one function in the source."""
    code = compile(source, "<sample>", "exec").co_consts[0]
    assert isinstance(code, CodeType)
    return code


def at(code: Code, op: str, number: int = 0) -> int:
    """Return where the n-th instruction with a name stands."""
    return [each.index for each in code.instructions if each.op == op][number]


def live_names(code: CodeType, index: int) -> set[str]:
    """Return the names of the live locals."""
    return {code.co_varnames[each] for each in live_locals(code, index)}


HANDLER = """
def f(g):
    try:
        g()
    except ValueError as error:
        return error
"""


def test_kinds_in_a_handler() -> None:
    code = decode(compiled(HANDLER))
    found = stacks(code)
    assert found[at(code, "PUSH_EXC_INFO")] == (Kind.VALUE,)
    assert found[at(code, "PUSH_EXC_INFO") + 1] == (Kind.SAVED, Kind.VALUE)
    cleanup = at(code, "COPY")
    assert found[cleanup] == (Kind.SAVED, Kind.LASTI, Kind.VALUE)
    assert found[cleanup + 1] == (Kind.SAVED, Kind.LASTI, Kind.VALUE, Kind.SAVED_COPY)
    # POP_EXCEPT took the copy; what it was a copy of is now nothing but a value.
    assert found[cleanup + 2] == (Kind.VALUE, Kind.LASTI, Kind.VALUE)


def test_kinds_of_calls() -> None:
    code = decode(compiled("def f(g, x):\n    return print(g(x.y()))\n"))
    found = stacks(code)
    called = (Kind.NULL, Kind.VALUE) if version().null_first else (Kind.VALUE, Kind.NULL)
    assert found[at(code, "CALL")] == 3 * called


def test_dead_locals() -> None:
    code = compiled("def f(a, b):\n    c = a + b\n    b = 1\n    return c, b\n")
    decoded = decode(code)
    assert live_names(code, 0) == {"a", "b"}
    assert live_names(code, at(decoded, "STORE_FAST")) == set()
    assert live_names(code, at(decoded, "STORE_FAST") + 1) == {"c"}
    assert live_names(code, at(decoded, "RETURN_VALUE")) == set()


def test_locals_live_around_a_loop() -> None:
    code = compiled("def f(n, k):\n    while n:\n        n -= k\n    return n\n")
    decoded = decode(code)
    assert live_names(code, at(decoded, "STORE_FAST")) == {"k"}
    assert live_names(code, at(decoded, "STORE_FAST") + 1) == {"n", "k"}


def test_what_a_handler_reads_is_live_in_its_block() -> None:
    code = compiled(
        "def f(a, g):\n    try:\n        a = g(1)\n    except KeyError:\n        return a\n"
    )
    assert "a" in live_names(code, at(decode(code), "CALL"))
    bare = compiled("def f(a, g):\n    a = g(1)\n    return a\n")
    assert "a" not in live_names(bare, at(decode(bare), "CALL"))


def test_all_is_live_where_locals_may_be_looked_at() -> None:
    code = compiled("def f(a, b):\n    return locals()\n")
    assert live_names(code, at(decode(code), "RETURN_VALUE")) == {"a", "b"}


def test_a_wrong_stack_is_told(verify: Callable[[Code], None]) -> None:
    code = compiled("def f(a):\n    return a + 1\n")
    broken = code.replace(co_code=code.co_code[:2] + code.co_code[4:])
    with pytest.raises(InternalError, match="does not balance"):
        verify(decode(broken))


def test_too_small_a_stack_is_told(verify: Callable[[Code], None]) -> None:
    code = compiled("def f(a):\n    return [a, a, a, a]\n").replace(co_stacksize=2)
    with pytest.raises(InternalError, match="stack slots"):
        verify(decode(code))


def test_unknown_python_is_refused() -> None:
    with pytest.raises(UnsupportedPython, match=r"Python 2\.7"):
        module(2, 7)

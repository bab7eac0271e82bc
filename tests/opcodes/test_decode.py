"""Decoding, held against `dis` over the standard library."""

import dis
import gc
import importlib
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType

import pytest

from dynacap.opcodes import Code, decode
from dynacap.opcodes.canonical import OPS, effect
from dynacap.opcodes.versions import version

MODULES = (
    "argparse", "ast", "asyncio.base_events", "contextlib", "ctypes", "dataclasses", "datetime",
    "email.message", "enum", "inspect", "logging", "mailbox", "pickle", "tarfile", "threading",
    "traceback", "typing", "unittest.mock", "_pydecimal", "turtle",
)  # fmt: skip


OF_LOCALS = frozenset({"LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
OF_CELLS = {op for op in OPS if op.endswith(("_CLOSURE", "_DEREF", "_CELL", "_CLOSURE_AND_CLEAR"))}


def codes_of(module: ModuleType) -> Iterator[CodeType]:
    """Yield every code object in a module's source."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        todo = [compile(file.read(), module.__file__, "exec")]
    while todo:
        code = todo.pop()
        yield code
        todo.extend(each for each in code.co_consts if isinstance(each, CodeType))


def originals(code: CodeType) -> list[dis.Instruction]:
    """Return what `dis` sees, without caches."""
    return list(dis.get_instructions(code))


@pytest.fixture(scope="module", params=MODULES)
def codes(request: pytest.FixtureRequest) -> list[CodeType]:
    """All code objects of one module."""
    name: str = request.param
    try:
        module = importlib.import_module(name)
    except ImportError:  # an optional part of the standard library (turtle needs tkinter)
        module = dis
    return list(codes_of(module))


def test_stack_balance(codes: list[CodeType], verify: Callable[[Code], None]) -> None:
    for code in codes:
        verify(decode(code))


def test_every_original_is_covered_once(codes: list[CodeType]) -> None:
    """Each original is in the span of one canonical instruction, or one that leaves nothing."""
    skipped = version().skipped
    for code in codes:
        seen = originals(code)
        covered: list[int] = []
        decoded = decode(code)
        for each in decoded.instructions:
            if decoded.is_boundary(each.index):
                covered.extend(range(each.first, each.last + 1))
            assert seen[each.last].offset == each.lasti
        assert covered == sorted(set(covered))
        for number in set(range(len(seen))) - set(covered):
            assert seen[number].opcode in skipped | {version().extended_arg}


def test_effects_are_those_of_dis(codes: list[CodeType]) -> None:
    for code in codes:
        seen = originals(code)
        decoded = decode(code)
        for each in decoded.instructions:
            pieces = decoded.original(each.index)
            if not decoded.is_boundary(each.index) or each.op == "RETURN_GENERATOR":
                continue
            span = seen[each.first : each.last + 1]
            for jump in (False, True):
                if jump and pieces[-1].target is None:
                    continue
                expected = sum(dis_effect(one, jump) for one in span)
                if each.op == "FOR_ITER" and jump and version().loop_end:
                    end = next(one for one in seen if one.offset == span[-1].argval)
                    expected += sum(
                        dis_effect(one, False)
                        for one in seen[seen.index(end) :][: len(version().loop_end)]
                    )
                found = sum(effect(one, jump and one is pieces[-1]) for one in pieces)
                assert found == expected, (code, each)


def dis_effect(one: dis.Instruction, jump: bool) -> int:
    """Return what `dis` says of an original's stack effect."""
    if one.opname == "RETURN_VALUE":  # some count what arrives at the caller
        return -1
    arg = one.arg if one.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(one.opcode, arg, jump=jump)


def test_operands_and_lines_are_those_of_dis(codes: list[CodeType]) -> None:
    for code in codes:
        seen = originals(code)
        decoded = decode(code)
        cells = code.co_cellvars + code.co_freevars
        for each in decoded.instructions:
            one = seen[each.last]
            assert each.positions == tuple(one.positions or ())
            second = not decoded.is_boundary(each.index)
            name = one.argval[second] if one.opcode in version().slot_pairs else one.argval
            if each.op in OF_LOCALS:
                assert code.co_varnames[each.arg] == name
            elif each.op in OF_CELLS:
                cell = each.arg.cell if each.op == "MAKE_CELL" else each.arg
                assert cells[cell] == name
            elif each.op == "LOAD_CONST" and one.opcode in dis.hasconst:
                assert each.arg is one.argval
            elif each.target is not None:
                end = one.argval + 2 * len(version().loop_end) * (each.op == "FOR_ITER")
                assert decoded.index_at(end) == each.target
            elif one.opcode in dis.hasname and decoded.is_boundary(each.index):
                assert getattr(each.arg, "name", each.arg) == one.argval


def test_handlers_are_those_of_the_exception_table(codes: list[CodeType]) -> None:
    for code in codes:
        decoded = decode(code)
        entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        for each, handler in zip(decoded.instructions, decoded.handlers, strict=True):
            inside = [one for one in entries if one.start <= each.lasti < one.end]
            assert len(inside) <= 1
            if not inside:
                assert handler is None
                continue
            assert handler is not None
            entry = inside[0]
            assert handler.target == decoded.index_at(entry.target)
            assert (handler.depth, handler.lasti) == (entry.depth, entry.lasti)


def ops(code: Code) -> list[tuple[str, object]]:
    """Return the pairs of name and operand."""
    return [(each.op, each.arg) for each in code.instructions]


def test_calls_fold_keyword_names() -> None:
    def sample(f):  # type: ignore[no-untyped-def]
        return f(1, b=2)

    found = ops(decode(sample.__code__))
    assert ("CALL", (2, ("b",))) in found or found[-3:-1] == [
        ("LOAD_CONST", ("b",)),
        ("CALL_KW", 2),
    ]


def test_operands() -> None:
    def sample(a, b):  # type: ignore[no-untyped-def]
        a += b
        first, *rest = a
        return f"{a!r:>3}" if (a is not b and a < b) or a in b else lambda: (first, rest)

    found = ops(decode(sample.__code__))
    apart = "CONVERT_VALUE" in version().opcodes
    formatted: list[tuple[str, object]] = [("FORMAT_VALUE", (None if apart else repr, True))]
    if apart:
        formatted.append(("CONVERT_VALUE", repr))
    for expected in (
        ("BINARY_OP", "+="),
        ("UNPACK_EX", (1, 0)),
        *formatted,
        ("IS_OP", True),
        ("COMPARE_OP", "<"),
        ("CONTAINS_OP", False),
        ("MAKE_CELL", (0, None)),
        ("STORE_FAST", 0),
    ):
        assert expected in found


def test_argument_cells() -> None:
    def sample(a, b):  # type: ignore[no-untyped-def]
        return lambda: b

    assert ("MAKE_CELL", (0, 1)) in ops(decode(sample.__code__))


def test_extended_arguments_belong_to_their_instruction() -> None:
    source = (
        "def f():\n" + "".join(f"    v{i} = {i + 1000}\n" for i in range(400)) + "    return v399"
    )
    namespace: dict[str, object] = {}
    exec(source, namespace)
    code = namespace["f"].__code__  # type: ignore[attr-defined]
    decoded = decode(code)
    assert [each.op for each in decoded.instructions[-2:]] == ["LOAD_FAST", "RETURN_VALUE"]
    assert decoded.instructions[-2].arg == 399
    assert decoded.instructions[-2].lasti == decoded.instructions[-2].offset + 2


def test_equal_code_objects_are_decoded_apart() -> None:
    def make() -> CodeType:
        code = compile("def f():\n    return [1.5]\n", "<same>", "exec").co_consts[0]
        assert isinstance(code, CodeType)
        return code

    one, other = make(), make()
    assert one == other
    assert decode(one) is decode(one)
    assert decode(one) is not decode(other)
    assert decode(other).code is other


def test_decoded_code_objects_are_freed() -> None:
    namespace: dict[str, object] = {}
    exec("def f(x):\n    return lambda: x\n", namespace)
    code = namespace["f"].__code__  # type: ignore[attr-defined]
    gone = weakref.ref(code)
    decode(code)
    namespace.clear()
    del code
    gc.collect()
    assert gone() is None


def test_a_line_table_that_ends_early() -> None:
    code = test_a_line_table_that_ends_early.__code__.replace(co_linetable=b"\xf8")
    assert decode(code).positions[-1] == (None, None, None, None)

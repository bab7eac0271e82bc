"""The canonical instruction set: what each operation takes from the stack, leaves there, and means.

Everything that must know all operations (the executor's handlers, the stack analysis, the tests of
completeness) relies on this one table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynacap.opcodes.instruction import Instruction

Count = int | Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    `pops` and `pushes` are counts, or functions of the operand; `peeks` says how many items from
    the top it looks at where that is more than it pops. `jump_pushes` replaces `pushes` on the way
    to the jump target where the two differ. `falls` is false where the next instruction never
    follows; `raises` where no exception can come out of it, whatever the exception table says.
    """

    meaning: str
    pops: Count = 0
    pushes: Count = 0
    peeks: Count = 0
    jump_pushes: Count | None = None
    falls: bool = True
    raises: bool = True


def _count(count: Count, arg: Any) -> int:
    return count if isinstance(count, int) else count(arg)


def pops(instruction: Instruction) -> int:
    """How many stack items the instruction takes."""
    return _count(OPS[instruction.op].pops, instruction.arg)


def pushes(instruction: Instruction, jump: bool = False) -> int:
    """How many stack items the instruction leaves, on the way to its target if `jump`."""
    op = OPS[instruction.op]
    if jump and op.jump_pushes is not None:
        return _count(op.jump_pushes, instruction.arg)
    return _count(op.pushes, instruction.arg)


def window(instruction: Instruction) -> int:
    """How many stack items, from the top, the instruction looks at."""
    return max(pops(instruction), _count(OPS[instruction.op].peeks, instruction.arg))


def effect(instruction: Instruction, jump: bool = False) -> int:
    """By how much the stack grows."""
    return pushes(instruction, jump) - pops(instruction)


def reach(pieces: list[Instruction], of: Callable[[Instruction], int]) -> int:
    """How far below the top of the stack instructions come that run one after the other.

    `of` says how far each of them comes: `pops` or `window`.
    """
    deepest = grown = 0
    for each in pieces:
        deepest = max(deepest, of(each) - grown)
        grown += effect(each)
    return deepest


def falls(instruction: Instruction) -> bool:
    """Whether the instruction after this one may follow it."""
    return OPS[instruction.op].falls


def raises(instruction: Instruction) -> bool:
    """Whether an exception can come out of the instruction."""
    return OPS[instruction.op].raises


def _same(arg: Any) -> int:
    return int(arg)


def _twice(arg: Any) -> int:
    return 2 * int(arg)


def _plus(extra: int) -> Callable[[Any], int]:
    return lambda arg: int(arg) + extra


def _flags(arg: Any) -> int:
    return int(arg).bit_count()


CONSTANTS = {
    "LOAD_CONST": Op("push the constant", 0, 1, raises=False),
    "LOAD_FAST": Op("push a local; UnboundLocalError if it has no value", 0, 1),
    "LOAD_FAST_AND_CLEAR": Op("push a local, or NULL, and unbind it", 0, 1, raises=False),
    "LOAD_CLOSURE": Op(
        "push a cell itself, or what an inlined comprehension keeps in its place", 0, 1
    ),
    "LOAD_CLOSURE_AND_CLEAR": Op("the same, or NULL; nothing is left there", 0, 1, raises=False),
    "LOAD_DEREF": Op("push a cell's content; NameError if it is empty", 0, 1),
    "LOAD_CLASSDEREF": Op("push a name of a class body, else a cell's content", 0, 1),
    "LOAD_GLOBAL": Op("push a global or builtin", 0, 1),
    "LOAD_NAME": Op("push a name looked up in locals, globals, builtins", 0, 1),
    "LOAD_LOCALS": Op("push the namespace of a class body", 0, 1),
    "LOAD_FROM_DICT_OR_GLOBALS": Op("namespace → a name of it, or a global or builtin", 1, 1),
    "LOAD_FROM_DICT_OR_DEREF": Op("namespace → a name of it, or a cell's content", 1, 1),
    "LOAD_ATTR": Op("replace the top by its attribute", 1, 1),
    "LOAD_BUILD_CLASS": Op("push __build_class__", 0, 1),
    "LOAD_SPECIAL": Op("replace the top by the method that its class has for it", 1, 1),
    "PUSH_NULL": Op("push a NULL", 0, 1, raises=False),
}

STORES = {
    "STORE_FAST": Op("pop into a local; NULL unbinds it", 1, raises=False),
    "STORE_CLOSURE": Op("pop into the place of a cell", 1, raises=False),
    "STORE_DEREF": Op("pop into a cell", 1),
    "STORE_GLOBAL": Op("pop into a global", 1),
    "STORE_NAME": Op("pop into a name of the namespace", 1),
    "STORE_ATTR": Op("value, object → ; set the object's attribute", 2),
    "STORE_SUBSCR": Op("value, container, key → ; set the item", 3),
    "DELETE_FAST": Op("unbind a local; UnboundLocalError if it has no value"),
    "DELETE_DEREF": Op("empty a cell; NameError if it is empty"),
    "DELETE_GLOBAL": Op("delete a global"),
    "DELETE_NAME": Op("delete a name of the namespace"),
    "DELETE_ATTR": Op("pop an object, delete its attribute", 1),
    "DELETE_SUBSCR": Op("container, key → ; delete the item", 2),
}

STACK = {
    "POP_TOP": Op("drop the top", 1, raises=False),
    "COPY": Op("push the item that is the n-th from the top", 0, 1, peeks=_same, raises=False),
    "SWAP": Op("exchange the top with the n-th from the top", _same, _same, raises=False),
}

OPERATORS = {
    "UNARY_POSITIVE": Op("+x", 1, 1),
    "UNARY_NEGATIVE": Op("-x", 1, 1),
    "UNARY_NOT": Op("not x", 1, 1),
    "UNARY_INVERT": Op("~x", 1, 1),
    "BINARY_OP": Op("x, y → x op y, in place where the operand ends in =", 2, 1),
    "BINARY_SUBSCR": Op("container, key → item", 2, 1),
    "BINARY_SLICE": Op("container, start, stop → container[start:stop]", 3, 1),
    "STORE_SLICE": Op("value, container, start, stop → ; container[start:stop] = value", 4),
    "COMPARE_OP": Op("x, y → comparison", 2, 1),
    "IS_OP": Op("x, y → x is y, or is not", 2, 1),
    "CONTAINS_OP": Op("x, y → x in y, or not in", 2, 1),
}

BUILDS = {
    "BUILD_TUPLE": Op("n items → tuple", _same, 1),
    "BUILD_LIST": Op("n items → list", _same, 1),
    "BUILD_SET": Op("n items → set", _same, 1),
    "BUILD_MAP": Op("n pairs of key and value → dict", _twice, 1),
    "BUILD_CONST_KEY_MAP": Op("n values, tuple of keys → dict", _plus(1), 1),
    "BUILD_STRING": Op("n strings → joined", _same, 1),
    "BUILD_SLICE": Op("start, stop (, step) → slice", _same, 1),
    "LIST_APPEND": Op("pop, append to the list n below", 1, peeks=_plus(1)),
    "SET_ADD": Op("pop, add to the set n below", 1, peeks=_plus(1)),
    "MAP_ADD": Op("key, value → ; set in the dict n below", 2, peeks=_plus(2)),
    "LIST_EXTEND": Op("pop, extend the list n below", 1, peeks=_plus(1)),
    "SET_UPDATE": Op("pop, update the set n below", 1, peeks=_plus(1)),
    "DICT_UPDATE": Op("pop, update the dict n below", 1, peeks=_plus(1)),
    "DICT_MERGE": Op("pop, update the dict of keywords, no key twice", 1, peeks=_plus(4)),
    "LIST_TO_TUPLE": Op("list → tuple", 1, 1),
    "UNPACK_SEQUENCE": Op("iterable → its n items, the first on top", 1, _same),
    "UNPACK_EX": Op(
        "iterable → items before, list, items after", 1, lambda arg: arg.before + arg.after + 1
    ),
    "FORMAT_VALUE": Op("value (, spec) → text", lambda arg: 1 + arg.has_spec, 1),
    "BUILD_INTERPOLATION": Op(
        "value, its text (, spec) → interpolation", lambda arg: 2 + arg.has_spec, 1
    ),
    "BUILD_TEMPLATE": Op("strings, interpolations → template", 2, 1),
    "CONVERT_VALUE": Op("value → its str, repr or ascii", 1, 1),
    "MAKE_FUNCTION": Op("parts by flag, code → function", lambda arg: 1 + _flags(arg or 0), 1),
    "SET_FUNCTION_ATTRIBUTE": Op("part, function → function that has it", 2, 1),
    "SETUP_ANNOTATIONS": Op("make __annotations__ in the namespace"),
}

CALLS = {
    "CALL": Op("NULL or method, callable or self, arguments → result", lambda a: a.argc + 2, 1),
    "CALL_KW": Op("the same, then names of the last arguments → result", _plus(3), 1),
    "CALL_FUNCTION_EX": Op(
        "NULL, callable, tuple (, dict) → result; whether a dict is there", lambda arg: 3 + arg, 1
    ),
    "IMPORT_NAME": Op("level, names → module", 2, 1),
    "IMPORT_FROM": Op("push the module's attribute", 0, 1, peeks=1),
    "IMPORT_STAR": Op("pop a module, take over its names", 1),
    "PRINT_EXPR": Op("pop, hand to sys.displayhook", 1),
    "LOAD_SUPER_ATTR": Op("super, class, self → attribute of super()", 3, 1),
}

JUMPS = {
    "JUMP": Op("go on at the target", falls=False),
    "POP_JUMP_IF_TRUE": Op("pop; jump if true", 1),
    "POP_JUMP_IF_FALSE": Op("pop; jump if false", 1),
    "POP_JUMP_IF_NONE": Op("pop; jump if None", 1),
    "POP_JUMP_IF_NOT_NONE": Op("pop; jump if not None", 1),
    "JUMP_IF_TRUE_OR_POP": Op("if true, jump and keep it, else pop", 1, 0, jump_pushes=1),
    "JUMP_IF_FALSE_OR_POP": Op("if false, jump and keep it, else pop", 1, 0, jump_pushes=1),
    "GET_ITER": Op("iterable → iterator", 1, 1),
    "FOR_ITER": Op(
        "push the next item; at the end jump, pop the iterator unless asked to keep it",
        1,
        2,
        jump_pushes=int,
    ),
    "RETURN_VALUE": Op("return the top", 1, falls=False),
    "RESUME": Op("nothing: marks where execution starts or goes on"),
    "MAKE_CELL": Op("make the cell, around the argument if it is one"),
    "COPY_FREE_VARS": Op("take over the function's closure"),
}

EXCEPTIONS = {
    "RAISE_VARARGS": Op("raise: again, x, or x from y", _same, falls=False),
    "RERAISE": Op(
        "raise the top as it is, as if at the saved offset n below if n", 1, peeks=_plus(1),
        falls=False,
    ),
    "PUSH_EXC_INFO": Op("exception → handled one before, exception; handle it", 1, 2, raises=False),
    "POP_EXCEPT": Op("pop the handled exception from before; again handled", 1, raises=False),
    "CHECK_EXC_MATCH": Op("exception, type → exception, whether it matches", 1, 1, peeks=2),
    "CHECK_EG_MATCH": Op("group, type → rest, match", 2, 2),
    "PREP_RERAISE_STAR": Op("original, list of raised → what to raise or None", 2, 1),
    "BEFORE_WITH": Op("manager → its __exit__, result of __enter__", 1, 2),
    "WITH_EXCEPT_START": Op("push the result of the __exit__ n deep", 0, 1, peeks=_same),
}  # fmt: skip

MATCHES = {
    "GET_LEN": Op("push len(top)", 0, 1, peeks=1),
    "MATCH_MAPPING": Op("push whether the top is a mapping", 0, 1, peeks=1),
    "MATCH_SEQUENCE": Op("push whether the top is a sequence", 0, 1, peeks=1),
    "MATCH_KEYS": Op("subject, keys; push tuple of values or None", 0, 1, peeks=2),
    "MATCH_CLASS": Op("subject, class, names → tuple of attributes or None", 3, 1),
}

GENERATORS = {
    "RETURN_GENERATOR": Op("return a generator of this frame; on its first send: its value", 0, 1),
    "YIELD_VALUE": Op("yield the top, receive what is sent", 1, 1),
    "SEND": Op(
        "send the top to the one below; at its end jump with its value, over it if asked",
        2, 2, 0, lambda arg: 1 + bool(arg),
    ),
    "CLEANUP_THROW": Op("iterator, sent, exception → None, value of its StopIteration", 3, 2),
    "STOPITERATION_ERROR": Op("exception → what leaves a generator in its place", 1, 1),
    "GET_YIELD_FROM_ITER": Op("iterable → iterator, generators as they are", 1, 1),
    "GET_AWAITABLE": Op("object → iterator of its await", 1, 1),
    "GET_AITER": Op("object → asynchronous iterator", 1, 1),
    "GET_ANEXT": Op("push the awaitable of the next item", 0, 1, peeks=1),
    "BEFORE_ASYNC_WITH": Op("manager → its __aexit__, awaitable of __aenter__", 1, 2),
    "END_ASYNC_FOR": Op("iterator, exception → ; raise it unless StopAsyncIteration", 2),
    "ASYNC_GEN_WRAP": Op("value → wrapped for an asynchronous generator", 1, 1),
}  # fmt: skip

TYPES = {
    "TYPEVAR": Op("name → type variable", 1, 1),
    "PARAMSPEC": Op("name → parameter specification", 1, 1),
    "TYPEVARTUPLE": Op("name → type variable tuple", 1, 1),
    "TYPEVAR_WITH_BOUND": Op("name, function for the bound → type variable", 2, 1),
    "TYPEVAR_WITH_CONSTRAINTS": Op("name, function for constraints → type variable", 2, 1),
    "SET_TYPEPARAM_DEFAULT": Op("type variable, function for its default → it", 2, 1),
    "SUBSCRIPT_GENERIC": Op("type parameters → Generic of them", 1, 1),
    "SET_FUNCTION_TYPE_PARAMS": Op("function, type parameters → function", 2, 1),
    "TYPEALIAS": Op("name, parameters and function for the value → alias", 1, 1),
}

OPS: dict[str, Op] = {
    **CONSTANTS,
    **STORES,
    **STACK,
    **OPERATORS,
    **BUILDS,
    **CALLS,
    **JUMPS,
    **EXCEPTIONS,
    **MATCHES,
    **GENERATORS,
    **TYPES,
}

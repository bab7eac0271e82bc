"""Containers, strings, unpacking and pattern matching."""

from __future__ import annotations

import sys
from collections.abc import Callable

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import MISSING, Const, Known, Value
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue, fresh_dict
from dynacap.values.data_model import drain, find_attribute, iterate, length, unpack
from dynacap.values.data_model.items import is_iterable
from dynacap.values.library.dicts import store
from dynacap.values.library.lists import append
from dynacap.values.library.sets import add, update
from dynacap.values.library.templates import interpolation, template

_SEQUENCE_FLAG, _MAPPING_FLAG = 1 << 5, 1 << 6


@handles("BUILD_SET")
def build_set(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop n, push a set."""
    made = SetValue({})
    for item in f.pop_many(i.arg):
        made.add(m.key_of(item, set), item)
    f.stack.append(made)


@handles("BUILD_MAP")
def build_map(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop n pairs, push a dict."""
    flat = f.pop_many(2 * i.arg)
    f.stack.append(fresh_dict(m, zip(flat[::2], flat[1::2], strict=True)))


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop a tuple of keys and n values, push a dict."""
    names = [Const(key) for key in f.pop().constant()]
    f.stack.append(fresh_dict(m, zip(names, f.pop_many(i.arg), strict=True)))


@handles("FORMAT_VALUE")
def format_value(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop a format spec if there is one, and a value; push its text."""
    spec = f.pop() if i.arg.has_spec else Const("")
    value = f.pop()
    if i.arg.conversion is not None:
        value = m.call(Known(i.arg.conversion), [value])
    if isinstance(value, Const) and type(value.value) is str and spec.constant() == "":
        f.stack.append(value)
    else:
        f.stack.append(m.call(Known(format), [value, spec]))


@handles("BUILD_INTERPOLATION")
def build_interpolation(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop a format spec if there is one, a text and a value; push the part of a template."""
    spec = f.pop() if i.arg.has_spec else Const("")
    text, value = f.pop(), f.pop()
    f.push(interpolation(value, text, i.arg.conversion, spec))


@handles("BUILD_TEMPLATE")
def build_template(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop a tuple of interpolations and one of strings, push a template."""
    interpolations, strings = f.pop(), f.pop()
    assert isinstance(interpolations, TupleValue) and isinstance(strings, TupleValue)
    f.push(template(strings, interpolations))


def _peek(f: Frame, depth: int) -> Value:
    value = f.stack[-depth]
    assert isinstance(value, Value)
    return value


def _into(name: str, count: int, apply: Callable[..., object]) -> None:
    def handler(m: Machine, f: Frame, i: Instruction) -> None:
        operands = f.pop_many(count)
        apply(m, _peek(f, i.arg), *operands)

    handles(name)(handler)


def _extend(m: Machine, made: ListValue, iterable: Value) -> None:
    if not is_iterable(m, iterable):
        kind = iterable.cls.__name__
        m.raise_error(TypeError, f"Value after * must be an iterable, not {kind}")
    made.items.extend(unpack(m, iterable))
    m.touch(made)


def _merge(m: Machine, made: DictValue, mapping: Value) -> None:
    for key, value in m.mapping_items(mapping):
        if made.get(m, m.key_of(key)) is not None:
            m.graph_break("call-error", f"keyword argument {key.describe()} is given twice")
        store(m, made, key, value)


def _update(m: Machine, made: DictValue, mapping: Value) -> None:
    for key, value in m.mapping_items(mapping):
        store(m, made, key, value)


# What is popped goes into the container that lies as deep as the operand says.
_into("LIST_APPEND", 1, append)
_into("LIST_EXTEND", 1, _extend)
_into("SET_ADD", 1, add)
_into("SET_UPDATE", 1, update)
_into("MAP_ADD", 2, store)
_into("DICT_UPDATE", 1, _update)
_into("DICT_MERGE", 1, _merge)

operation("BUILD_TUPLE", None, lambda m, count, *items: TupleValue([*items]))
operation("BUILD_LIST", None, lambda m, count, *items: ListValue([*items]))
operation("BUILD_STRING", None, lambda m, n, *parts: Const("".join([p.constant() for p in parts])))


@handles("LIST_TO_TUPLE")
def list_to_tuple(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace a list by a tuple."""
    made = f.pop()
    assert isinstance(made, ListValue)
    f.stack.append(TupleValue(list(made.items)))


def _to_unpack(m: Machine, obj: Value, most: int = sys.maxsize) -> list[Value]:
    methods = ("__iter__", "__getitem__")
    if all(m.lookup(obj.cls, method) is MISSING for method in methods):
        m.raise_error(TypeError, f"cannot unpack non-iterable {obj.cls.__name__} object")
    whole = obj.cls in (tuple, list)  # which nobody sees being walked
    return unpack(m, obj) if whole else drain(m, iterate(m, obj), most)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop an iterable of exactly n, push its elements, the first on top."""
    items = _to_unpack(m, f.pop(), i.arg + 1)
    if len(items) != i.arg:
        few = len(items) < i.arg
        found = f", got {len(items)}" if few else ""
        word = "not enough" if few else "too many"
        m.raise_error(ValueError, f"{word} values to unpack (expected {i.arg}{found})")
    f.stack.extend(reversed(items))


@handles("UNPACK_EX")
def unpack_ex(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop an iterable; push the ones after, the starred list, the ones before on top."""
    items = _to_unpack(m, f.pop())
    before, after = i.arg.before, i.arg.after
    if len(items) < before + after:
        least = f"expected at least {before + after}, got {len(items)}"
        m.raise_error(ValueError, f"not enough values to unpack ({least})")
    split = len(items) - after
    f.stack.extend(reversed(items[split:]))
    f.stack.append(ListValue(items[before:split]))
    f.stack.extend(reversed(items[:before]))


@handles("GET_LEN")
def get_len(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the length of the top."""
    f.stack.append(Const(length(m, _peek(f, 1))))


@handles("MATCH_MAPPING")
def match_mapping(m: Machine, f: Frame, i: Instruction) -> None:
    """Push whether the top is a mapping."""
    f.stack.append(Const(bool(_peek(f, 1).cls.__flags__ & _MAPPING_FLAG)))


@handles("MATCH_SEQUENCE")
def match_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    """Push whether the top is a sequence."""
    f.stack.append(Const(bool(_peek(f, 1).cls.__flags__ & _SEQUENCE_FLAG)))


@handles("MATCH_KEYS")
def match_keys(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the values of the keys on top in the mapping below, or None if one is missing."""
    keys, mapping = _peek(f, 1), _peek(f, 2)
    if not isinstance(mapping, DictValue) or not isinstance(keys, TupleValue):
        m.graph_break("match", "a mapping pattern on something that is no dict")
    wanted = [m.key_of(m.force(key)) for key in keys.items]
    if len(set(wanted)) < len(wanted):
        m.graph_break("match", "a mapping pattern with a key that is there twice")
    found = [mapping.get(m, key) for key in wanted]
    missing = any(value is None for value in found)
    f.stack.append(Const(None) if missing else TupleValue([v for v in found if v is not None]))


@handles("MATCH_CLASS")
def match_class(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop names, class and subject; push the attributes to match, or None."""
    names, cls_value, subject = f.pop(), f.pop(), f.pop()
    if not m.call(Known(isinstance), [subject, cls_value]).constant():
        f.stack.append(Const(None))
        return
    attributes = [*_positional_names(m, cls_value, i.arg), *names.constant()]
    found: list[Value] = []
    if len(set(attributes)) < len(attributes):
        m.graph_break("match", "a class pattern with two sub-patterns for one attribute")
    for name in attributes:
        value = subject if name is None else find_attribute(m, subject, name)
        if value is None:
            f.stack.append(Const(None))
            return
        found.append(value)
    f.stack.append(TupleValue(found))


_SELF_MATCHING = (
    bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple,
)  # fmt: skip


def _positional_names(m: Machine, cls_value: Value, count: int) -> list[str | None]:
    """The attributes that positional sub-patterns stand for; None is the subject itself."""
    if not count:
        return []
    match_args = find_attribute(m, cls_value, "__match_args__")
    if match_args is None:
        if count == 1 and issubclass(cls_value.known(), _SELF_MATCHING):
            return [None]
        m.graph_break("match", "a class pattern with too many positional sub-patterns")
    held = match_args.items if isinstance(match_args, TupleValue) else []
    names = [m.force_item(held, at) for at in range(min(count, len(held)))]
    if len(names) < count or any(name.cls is not str for name in names):
        m.graph_break("match", "a class pattern that does not fit __match_args__")
    return [name.constant() for name in names]

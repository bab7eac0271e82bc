"""Containers, strings, unpacking and pattern matching."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Format, Instruction
from dynacap.values.base import MISSING, NONE, Const, Known, Value
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue, fresh_dict
from dynacap.values.data_model import drain, find_attribute, iterate, length, unpack
from dynacap.values.data_model.items import is_iterable
from dynacap.values.library.dicts import store
from dynacap.values.library.lists import append
from dynacap.values.library.sets import add, update
from dynacap.values.library.templates import interpolation, template
from dynacap.values.wording import wrong_number


def _set(m: Machine, count: int, *items: Value) -> Value:
    made = SetValue({})
    for item in items:
        made.add(m.key_of(item, set), item)
    return made


def _map(m: Machine, keys: Iterable[Value], values: Iterable[Value]) -> Value:
    return fresh_dict(m, zip(keys, values, strict=True))


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


def _interpolation(m: Machine, how: Format, value: Value, text: Value, *spec: Value) -> Value:
    return interpolation(value, text, how.conversion, *(spec or [Const("")]))


def _template(m: Machine, _: None, strings: TupleValue, interpolations: TupleValue) -> Value:
    return template(strings, interpolations)


def _extend(m: Machine, made: ListValue, iterable: Value) -> None:
    if not is_iterable(m, iterable):
        kind = iterable.cls.__name__
        m.raise_error(TypeError, f"Value after * must be an iterable, not {kind}")
    made.items.extend(unpack(m, iterable))
    m.touch(made)


def _update(m: Machine, made: DictValue, mapping: Value) -> None:
    for key, value in m.mapping_items(mapping):
        store(m, made, key, value)


def _into(change: Callable[..., object], count: int = 1) -> Callable[..., None]:
    """What is popped goes into the container that lies as deep below as the operand says."""

    def into(m: Machine, depth: int, *seen: Value) -> None:
        change(m, seen[-depth - count], *seen[-count:])

    return into


def _to_unpack(m: Machine, obj: Value) -> Value:
    methods = ("__iter__", "__getitem__")
    if all(m.lookup(obj.cls, method) is MISSING for method in methods):
        m.raise_error(TypeError, f"cannot unpack non-iterable {obj.cls.__name__} object")
    return iterate(m, obj)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop an iterable of exactly n, push its elements, the first on top."""
    obj = f.pop()
    whole = obj.cls in (tuple, list)  # which nobody sees being walked
    items = unpack(m, obj) if whole else drain(m, _to_unpack(m, obj), i.arg + 1)
    if len(items) != i.arg:
        size = length(m, obj) if obj.cls is dict else len(items)
        m.raise_real(wrong_number(i.arg, obj.cls, size))
    f.stack.extend(reversed(items))


@handles("UNPACK_EX")
def unpack_ex(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop an iterable; push the ones after, the starred list, the ones before on top."""
    iterator = _to_unpack(m, f.pop())
    before, after = i.arg.before, i.arg.after
    items = drain(m, iterator, before)
    if len(items) == before:
        items += unpack(m, iterator)
    if len(items) < before + after:
        least = f"expected at least {before + after}, got {len(items)}"
        m.raise_error(ValueError, f"not enough values to unpack ({least})")
    split = len(items) - after
    f.stack.extend(reversed(items[split:]))
    f.stack.append(ListValue(items[before:split]))
    f.stack.extend(reversed(items[:before]))


def _has_flag(flag: int) -> Callable[..., Value]:
    return lambda m, _, subject: Const(bool(subject.cls.__flags__ & flag))


def _match_keys(m: Machine, _: None, mapping: Value, keys: Value) -> Value:
    if not isinstance(mapping, DictValue) or not isinstance(keys, TupleValue):
        m.graph_break("match", "a mapping pattern on something that is no dict")
    wanted = [m.key_of(m.force(key)) for key in keys.items]
    if len(set(wanted)) < len(wanted):
        m.graph_break("match", "a mapping pattern with a key that is there twice")
    found = [mapping.get(m, key) for key in wanted]
    missing = any(value is None for value in found)
    return NONE if missing else TupleValue([v for v in found if v is not None])


def _match_class(m: Machine, count: int, subject: Value, cls_value: Value, names: Value) -> Value:
    if not m.call(Known(isinstance), [subject, cls_value]).constant():
        return NONE
    attributes = [*_positional_names(m, cls_value, count), *names.constant()]
    found: list[Value] = []
    if len(set(attributes)) < len(attributes):
        m.graph_break("match", "a class pattern with two sub-patterns for one attribute")
    for name in attributes:
        value = subject if name is None else find_attribute(m, subject, name)
        if value is None:
            return NONE
        found.append(value)
    return TupleValue(found)


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


# name -> what becomes of the machine, the operand, and what is popped or looked at
_OPERATIONS: dict[str, Callable[..., Value | None]] = {
    "BUILD_TUPLE": lambda m, count, *items: TupleValue([*items]),
    "BUILD_LIST": lambda m, count, *items: ListValue([*items]),
    "BUILD_STRING": lambda m, n, *parts: Const("".join([part.constant() for part in parts])),
    "BUILD_SET": _set,
    "BUILD_MAP": lambda m, count, *flat: _map(m, flat[::2], flat[1::2]),
    "BUILD_CONST_KEY_MAP": lambda m, n, *values: _map(m, m.unpack(values[-1]), values[:-1]),
    "BUILD_INTERPOLATION": _interpolation,
    "BUILD_TEMPLATE": _template,
    "LIST_APPEND": _into(append),
    "LIST_EXTEND": _into(_extend),
    "SET_ADD": _into(add),
    "SET_UPDATE": _into(update),
    "MAP_ADD": _into(store, 2),
    "DICT_UPDATE": _into(_update),
    "LIST_TO_TUPLE": lambda m, _, made: TupleValue([*made.items]),
    "GET_LEN": lambda m, _, subject: Const(length(m, subject)),
    "MATCH_MAPPING": _has_flag(1 << 6),
    "MATCH_SEQUENCE": _has_flag(1 << 5),
    "MATCH_KEYS": _match_keys,
    "MATCH_CLASS": _match_class,
}
for _name, _apply in _OPERATIONS.items():
    operation(_name, _apply)

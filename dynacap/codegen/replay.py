"""Side effects: what the traced region changed in outside objects is done to them, once."""

from __future__ import annotations

import collections
from typing import Any

from dynacap.codegen import runtime
from dynacap.codegen.emit import Emitter, dict_method, repeat_steps, rule_for
from dynacap.codegen.generators import replay_generator
from dynacap.values.base import DELETED, Value, is_outside
from dynacap.values.build import CONST_TYPES
from dynacap.values.callables import CacheHit
from dynacap.values.container import DictValue, ListValue, SetValue
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator import advanced
from dynacap.values.iterator_outside import OutsideEnumerate, OutsideIterator
from dynacap.values.object import CellValue, ClassChange, ExceptionValue, ObjectValue


def replay(e: Emitter, touched: list[Value]) -> None:
    """Write the effects, in the order in which the objects were first changed."""
    for value in touched:
        if not is_outside(value):
            continue
        rule = rule_for(_RULES, value)
        if rule is None:
            e.machine.graph_break("side-effect", f"a change of a {value.describe()}")
        else:
            rule(e, value)
    _ends(e, touched)


def _dict(e: Emitter, value: DictValue) -> None:
    name = e.expr(value)
    setter = dict_method(e, value.cls, "__setitem__")
    # What dies in another thread may have taken the key away meanwhile.
    ordered = issubclass(value.cls, collections.OrderedDict)
    deleter = dict_method(e, value.cls, "__delitem__" if ordered else "pop")
    lines = e.filling(value.dirty)
    for key in value.dirty:
        held = value.over[key]
        key_text = e.expr(value.key_value(e.machine, key))
        moved = held is DELETED or key in value.fresh
        if moved and _is_outside(e, value, key):
            lines.append(f"{deleter}({name}, {key_text}{'' if ordered else ', None'})")
        if isinstance(held, Value):
            lines.append(f"{setter}({name}, {key_text}, {e.expr(held)})")


def _is_outside(e: Emitter, value: DictValue, key: Any) -> bool:
    """Whether the outside dict has the key before the effects."""
    if type(key) in CONST_TYPES:
        return dict.__contains__(value.real, key)
    return key in e.machine.outside_keys(value)


def _list(e: Emitter, value: ListValue) -> None:
    name = e.expr(value)
    if not value.is_loaded:
        appended = ", ".join([e.expr(item) for item in value.appended])
        e.line(f"list.extend({name}, [{appended}])")
        return
    items = f"[{', '.join([e.expr(item) for item in value.items])}]"
    if issubclass(value.cls, collections.deque):
        base, fresh = e.kind(collections.deque), e.let("items", items)
        if not value.state:  # its iterators go on
            pair = e.fresh("pair")
            e.line(f"for {pair} in enumerate({fresh}): {base}.__setitem__({name}, *{pair})")
            return
        e.line(f"{base}.clear({name})")
        e.line(f"{base}.extend({name}, {fresh})")
    else:
        e.line(f"list.__setitem__({name}, slice(None), {items})")


def _object(e: Emitter, value: ObjectValue) -> None:
    name = e.expr(value)
    for slot in value.dirty_slots:
        held = value.slots[slot]
        if isinstance(held, Value):
            e.line(f"object.__setattr__({name}, {slot!r}, {e.expr(held)})")
        else:
            e.line(f"{e.helper(runtime.clear_slot)}({name}, {slot!r})")


def _exception(e: Emitter, value: ExceptionValue) -> None:
    _object(e, value)
    e.give_traceback(value, e.expr(value))


def _cell(e: Emitter, value: CellValue) -> None:
    name = e.expr(value)
    if isinstance(value.content, Value):
        e.line(f"{name}.cell_contents = {e.expr(value.content)}")
    else:
        e.line(f"del {name}.cell_contents")


def _class(e: Emitter, value: ClassChange) -> None:
    name = e.expr(value.owner)
    for attribute, held in value.written.items():
        e.line(f"type.__setattr__({name}, {attribute!r}, {e.expr(held)})")


def _iterator(e: Emitter, value: OutsideIterator) -> None:
    ends = [] if value.by_others else [value]
    if isinstance(value, OutsideEnumerate):
        ends += value.leaves
    for each, steps in [
        (value, value.taken - value.by_others),
        *((one, one.missed) for one in ends),
    ]:
        if steps and each.place(e.machine) is None:
            e.line(f"{e.helper(advanced)}({e.expr(each)}, {steps})")


def _hit(e: Emitter, value: CacheHit) -> None:
    keywords = [f"{name!r}: {e.expr(held)}" for name, held in value.keywords.items()]
    called = f"{e.expr(value.wrapper)}(*({e.exprs(value.args)})"
    e.line(f"{called}, **{{{', '.join(keywords)}}})")


def _ends(e: Emitter, touched: list[Value]) -> None:
    """What iterators over lists that have changed do when all else is done: find their place, and
    meet their ends."""
    for value in touched:
        if not isinstance(value, OutsideIterator):
            continue
        place = value.place(e.machine)
        if place is not None:
            e.line(f"{e.expr(value)}.__setstate__({place})")
            if value.missed:
                e.line(f"{e.helper(advanced)}({e.expr(value)}, {value.missed})")


_RULES: dict[type, Any] = {
    ClassChange: _class,
    DictValue: _dict,
    ListValue: _list,
    SetValue: lambda e, value: repeat_steps(e, value, e.expr(value)),
    ObjectValue: _object,
    ExceptionValue: _exception,
    CellValue: _cell,
    OutsideIterator: _iterator,
    GeneratorValue: replay_generator,
    CacheHit: _hit,
}

"""A value becomes an expression that gives the object at run time.

Outside objects are arguments of the generated function (the guards hand them over); tensors that
the graph made are among its outputs; what capture made is built anew, each object once.  Objects
that can hold themselves are made first and filled after.
"""

from __future__ import annotations

import builtins
import collections
import itertools
import keyword
import math
import re
import sys
import types
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import torch

from dynacap.backends.numpy_layer.memory import shown_as
from dynacap.backends.torch_state import is_tracked
from dynacap.codegen import runtime
from dynacap.guards.raw import type_lookup
from dynacap.guards.source import FunctionGlobals, Source
from dynacap.values.array import ArrayValue
from dynacap.values.base import NONE, Alias, Const, Known, Lazy, Value
from dynacap.values.build import CONST_TYPES
from dynacap.values.container import (
    DictValue,
    Key,
    ListValue,
    SetValue,
    SliceValue,
    Stored,
    TupleValue,
)
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.library.exceptions import expect_nothing_handled
from dynacap.values.natives import registers
from dynacap.values.object import (
    CellValue,
    ExceptionValue,
    ObjectValue,
    PayloadValue,
    PropertyValue,
    SuperValue,
)
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.value import NodeValue, TensorValue

_LITERALS = (bool, int, str, bytes, type(None), type(Ellipsis))
_RESERVED = {"graph", "entry", "outputs", *dir(builtins)}
Rule = Callable[["Emitter", Any], str]
SomeRule = TypeVar("SomeRule")


class _NotMadeYet(Exception):
    """An object is needed for what it is itself made of."""


class Emitter:
    """Writes the body of one generated function.

    ``args`` are the sources whose values it takes, ``outputs`` the graph nodes whose results it
    uses, ``constants`` the objects that it names.
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.lines: list[str] = []
        self.late: list[str] = []  # behind them
        self.args: dict[Source, str] = {}
        self.outputs: dict[Any, str] = {}
        self.constants: dict[str, Any] = {}
        self._constant_names: dict[int, str] = {}
        self._names: set[str] = set(_RESERVED)
        self._built: dict[Value, str] = {}
        self._begun: dict[Value, list[Callable[[], None]]] = {}  # what is filled once they are made
        self._tracebacks: dict[Value, str] = {}

    # -- names -----------------------------------------------------------------------------------
    def fresh(self, wanted: str) -> str:
        """A name of its own, like the one that is wanted."""
        base = re.sub(r"\W+", "_", wanted).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = "_" + base
        name, number = base[:60], 0
        while name in self._names:
            number += 1
            name = f"{base[:60]}_{number}"
        self._names.add(name)
        return name

    def arg(self, source: Source) -> str:
        """The argument that carries the value of a source."""
        name = self.args.get(source)
        if name is None:
            name = self.args[source] = self.fresh(source.name())
        return name

    def output(self, node: Any) -> str:
        """The name of what a node of the graph gives."""
        name = self.outputs.get(node)
        if name is None:
            name = self.outputs[node] = self.fresh(node.name)
        return name

    def constant(self, obj: Any, wanted: str = "const") -> str:
        """A name for an object that the entry holds."""
        name = self._constant_names.get(id(obj))
        if name is None:
            name = self._constant_names[id(obj)] = self.fresh(wanted)
            self.constants[name] = obj
        return name

    def helper(self, function: Any) -> str:
        """A name for a function of the runtime module."""
        return self.constant(function, getattr(function, "__name__", "helper"))

    def kind(self, cls: type) -> str:
        """A name for a class; one that a function made is not kept by the entry if need be."""
        if vars(builtins).get(name := cls.__name__) is cls:
            return name
        mirrors: dict[int, Value] = self.machine.mirrors
        found = mirrors.get(id(cls)) if "<locals>" in cls.__qualname__ else None
        return self.constant(cls, name) if found is None else self.expr(found)

    def empty(self, base: type, cls: type) -> str:
        """A new object of a class, as its built-in base makes it."""
        return f"{self.kind(base)}.__new__({self.kind(cls)})"

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)

    def filling(self, keys: Iterable[Key]) -> list[str]:
        """The lines that give keys to a dict or set: behind all others if they ask the program,
        which has to say in the end what it said when they were first asked.
        """
        if not self.machine.user_keys or all(type(key) in CONST_TYPES for key in keys):
            return self.lines
        self.machine.check_keys(keys)
        return self.late

    def let(self, wanted: str, expression: str) -> str:
        """Give an expression a name."""
        name = self.fresh(wanted)
        self.line(f"{name} = {expression}")
        return name

    # -- values ----------------------------------------------------------------------------------
    def expr(self, value: Value) -> str:
        """The expression for a value; building lines are added before."""
        if type(value) is Const and _is_literal(value.value):
            return repr(value.value)
        if value.source is not None:
            return self.arg(value.source)
        built = self._built.get(value)
        if built is None:
            if value in self._begun:
                raise _NotMadeYet(value)
            self._begun[value] = []
            try:
                built = self._build(value)
            finally:
                waiting = self._begun.pop(value)
            if waiting and not built.isidentifier():
                built = self.let("made", built)
            if built.isidentifier():
                self._built.setdefault(value, built)
            for fill in waiting:
                self.fill(fill)
        return built

    def fill(self, fill: Callable[[], None]) -> None:
        """Write the lines that fill an object which has its name; later, if they need one that is
        being made of it."""
        grows: tuple[Any, ...] = (self.lines, self.late, *self._begun.values())
        kept = [(each, len(each)) for each in (*grows, self._built, self._tracebacks)]
        try:
            fill()
        except _NotMadeYet as unmade:
            for each, length in kept:
                while len(each) > length:
                    each.popitem() if isinstance(each, dict) else each.pop()
            self._begun[unmade.args[0]].append(fill)

    def exprs(self, values: list[Value]) -> str:
        """Expressions separated by commas, with one behind a single one."""
        texts = [self.expr(value) for value in values]
        return ", ".join(texts) + ("," if len(texts) == 1 else "")

    def built(self, value: Value, name: str) -> None:
        """Note the name of an object before it is filled, so that it can hold itself."""
        self._built[value] = name

    def _build(self, value: Value) -> str:
        real = getattr(value, "real", None)
        if real is not None:
            return self.constant(real, type(real).__name__.lower())
        rule = rule_for(_RULES, value)
        if rule is not None:
            return rule(self, value)
        rebuild: Any = getattr(value, "rebuild", None)
        if rebuild is None:
            self.machine.graph_break(
                "cannot-rebuild", f"a {value.describe()} leaves the captured region"
            )
        text: str = rebuild(self)
        return self.let(value.cls.__name__, text)

    def fill_attributes(self, value: Stored | TensorValue | FunctionValue, name: str) -> None:
        """Set the instance dict of an object that was just made."""
        attrs = value.attrs
        if attrs is not None and attrs.fresh:
            into = self.attributes(name, value.cls)
            self.fill(lambda: self.line(f"{into}.update({{{self.dict_items(attrs)}}})"))

    def attributes(self, name: str, cls: type) -> str:
        """The instance dict of an object, whatever its class gives for ``__dict__``."""
        ways = type_lookup(cls, "__getattribute__"), type(type_lookup(cls, "__dict__"))
        plain = ways == (object.__getattribute__, types.GetSetDescriptorType)
        return f"{name}.__dict__" if plain else f"{self.helper(runtime.attributes_of)}({name})"

    def give_traceback(self, value: ExceptionValue, name: str) -> None:
        """Add to the traceback of an exception that was raised while capturing."""
        if not value.trail:
            return
        tb, make = f"{name}.__traceback__", self.helper(runtime.make_traceback)
        start, trail, kept = tb, value.trail, value.traceback
        if (
            kept is not None
            and value.real is value.before
            and trail[: len(kept.trail)] == kept.trail
        ):
            start = self._tracebacks.get(kept, "")
            if not start:  # those of the same group's parts are one
                start = self.let("traceback", f"{make}(None, {tuple(kept.trail)!r})")
                self._tracebacks[kept] = start
            trail = trail[len(kept.trail) :]
        self.line(f"{tb} = {make}({start}, {tuple(trail)!r})")

    def dict_items(self, value: DictValue) -> str:
        pairs = []
        for key, item in value.items(self.machine):
            pairs.append(f"{self.expr(key)}: {self.expr(item)}")
        return ", ".join(pairs)


def rule_for(rules: dict[type, SomeRule], value: Value) -> SomeRule | None:
    """The rule for the nearest class of a value that has one."""
    return next((rules[cls] for cls in type(value).__mro__ if cls in rules), None)


def _is_literal(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value) and not (value == 0.0 and math.copysign(1.0, value) < 0)
    if type(value) is int:
        return value.bit_length() < 128  # Python may refuse to write more
    if type(value) is str:  # a literal is the interned text; another, though equal, is not it
        return value.isidentifier() and sys.intern(value) is value
    return type(value) in _LITERALS


def _const(e: Emitter, value: Const) -> str:
    real = value.value
    if type(real) is range and all(map(_is_literal, (real.start, real.stop, real.step))):
        return e.let("range", repr(real))  # a new one for each call; a slice is the code's own
    return e.constant(real, type(real).__name__.lower())


def _node(e: Emitter, value: NodeValue) -> str:
    if isinstance(value, TensorValue) and is_tracked(value.fake):
        what = "a tensor that a transform recorded lives on"
        e.machine.graph_break("function-transform", what, before=value.node.meta["step"])
    name = e.output(value.node)
    if type(value) is TensorValue and value.cls is not torch.Tensor:
        name = e.let("tensor", f"{e.helper(torch.Tensor.as_subclass)}({name}, {e.kind(value.cls)})")
    if isinstance(value, TensorValue) and value.attrs is not None:
        e.built(value, name)
        e.fill_attributes(value, name)
    return name


def _array(e: Emitter, value: ArrayValue) -> str:
    owner = e.machine.tensors.owner_of(value)
    maker, rest = shown_as(value.twin, owner.twin)
    base = _node(e, value) if owner is value else e.expr(owner)
    return e.let("array", f"{e.helper(maker)}({base}, *{rest!r})")


def _tuple(e: Emitter, value: TupleValue) -> str:
    items = f"({e.exprs(value.items)})"
    cls = value.cls
    if cls is tuple:
        return e.let("items", items) if value.items else items
    plain = hasattr(cls, "_fields") or cls.__new__ is tuple.__new__
    made = f"tuple.__new__({e.kind(cls)}, {items})" if plain else f"{e.kind(cls)}({items})"
    name = e.let(cls.__name__.lower(), made)
    e.fill_attributes(value, name)
    return name


def _list(e: Emitter, value: ListValue) -> str:
    base = collections.deque if issubclass(value.cls, collections.deque) else list
    name = e.let("items", "[]" if value.cls is list else e.empty(base, value.cls))
    e.built(value, name)
    if value.maxlen is not None:
        e.line(f"{e.kind(base)}.__init__({name}, (), {value.maxlen})")
    if value.items:
        e.fill(lambda: e.line(f"{e.kind(base)}.extend({name}, [{e.exprs(value.items)}])"))
    e.fill_attributes(value, name)
    return name


def dict_method(e: Emitter, cls: type, method: str) -> str:
    """A method of dicts that does not ask a subclass."""
    ordered = issubclass(cls, collections.OrderedDict)
    return f"{e.kind(collections.OrderedDict if ordered else dict)}.{method}"


def _dict(e: Emitter, value: DictValue) -> str:
    if value.owner is not None:
        return e.let("attributes", e.attributes(e.expr(value.owner), value.owner.cls))
    cls = value.cls
    kinds = (collections.OrderedDict, collections.defaultdict, dict)
    base: Any = next(base for base in kinds if issubclass(cls, base))
    name = e.let("mapping", "{}" if cls is dict else e.empty(base, cls))
    if base is collections.defaultdict:
        e.line(f"{e.kind(base)}.__init__({name}, {e.expr(value.default or NONE)})")
    e.built(value, name)
    e.fill(lambda: _fill_dict(e, value, name))
    e.fill_attributes(value, name)
    return name


def _fill_dict(e: Emitter, value: DictValue, name: str) -> None:
    setter = dict_method(e, value.cls, "__setitem__")
    lines = e.filling(value.keys(e.machine))
    for key, item in value.items(e.machine):
        key_text, item_text = e.expr(key), e.expr(item)
        if value.cls is dict:
            lines.append(f"{name}[{key_text}] = {item_text}")
        else:
            lines.append(f"{setter}({name}, {key_text}, {item_text})")


def _set(e: Emitter, value: SetValue) -> str:
    cls, late, done = value.cls, e.filling(value.items) is e.late, 0
    if value.origin is not None and not late and not any(map(_is_changed, value.origin[1])):
        function, operands, done = value.origin
        name = e.let("members", f"{e.helper(function)}({e.exprs(operands)})")
    elif issubclass(cls, frozenset):
        if late:
            e.machine.graph_break("user-hash", "a frozenset is filled before all else is done")
        items, done = e.exprs([*value.items.values()]), len(value.steps)
        name = e.let("members", f"frozenset.__new__({e.kind(cls)}, [{items}])")
    else:
        name = e.let("members", e.empty(set, cls))
    e.fill(lambda: repeat_steps(e, value, name, done))
    e.fill_attributes(value, name)
    return name


def _is_changed(operand: Value) -> bool:
    """Whether it is an outside set that is another by the time that all is made."""
    return isinstance(operand, SetValue) and operand.real is not None and bool(operand.steps)


def repeat_steps(e: Emitter, value: SetValue, name: str, done: int = 0) -> None:
    """Do to a set what was done to its value, without asking a subclass, but for the first."""
    lines = e.filling(value.items)
    for method, group in itertools.groupby(value.steps[done:], key=lambda step: step[0]):
        given = ["" if arg is None else e.expr(arg) for _, arg in group]
        if method == "add":
            lines.append(f"set.update({name}, [{', '.join(given)}])")
            continue
        for arg in given:
            lines.append(f"set.{method}({name}, {arg})")


def _object(e: Emitter, value: ObjectValue) -> str:
    cls = value.cls
    made = f"{e.helper(runtime.object_new)}({e.kind(cls)})"
    return _filled(e, value, e.let(cls.__name__.lower(), made))


def _payload(e: Emitter, value: PayloadValue) -> str:
    made = f"{value.base.__name__}.__new__({e.kind(value.cls)}, {e.expr(Const(value.payload))})"
    return _filled(e, value, e.let(value.cls.__name__.lower(), made))


def _filled(e: Emitter, value: ObjectValue, name: str) -> str:
    """An object that was just made, with its slots and attributes."""
    e.built(value, name)
    for slot, held in value.slots.items():
        if isinstance(held, Value):
            e.fill(partial(_set_slot, e, name, slot, held))
    e.fill_attributes(value, name)
    return name


def _set_slot(e: Emitter, name: str, slot: str, held: Value) -> None:
    e.line(f"object.__setattr__({name}, {slot!r}, {e.expr(held)})")


def _exception(e: Emitter, value: ExceptionValue) -> str:
    if value.raised and issubclass(value.cls, NameError):
        # Who prints it looks for names like it in the frame that raised it.
        detail = f"{value.describe()} is raised"
        e.machine.graph_break("traceback", detail, before=value.raised_at)
    args = e.expr(value.shown or TupleValue(value.args))
    given = f"{e.kind(value.cls)}, {args}, ({e.exprs(value.made_of)})"
    name = _filled(e, value, e.let("exc", f"{e.helper(runtime.make_exception)}({given})"))
    if value.before is not None:
        e.line(f"{name}.__traceback__ = {e.expr(value.before)}")
    if value.raised:
        e.give_traceback(value, name)
        if value.context is None:
            expect_nothing_handled(e.machine)  # it would be the context
    if value.cause is not None or value.context is not None or value.suppress_context:
        cause, context = e.expr(value.cause or NONE), e.expr(value.context or NONE)
        e.line(f"{name}.__cause__ = {cause}")
        e.line(f"{name}.__context__ = {context}")
        e.line(f"{name}.__suppress_context__ = {value.suppress_context}")
    return name


def _cell(e: Emitter, value: CellValue) -> str:
    name = e.let("cell", f"{e.helper(runtime.CellType)}()")
    e.built(value, name)
    content = value.content
    if isinstance(content, Value):
        e.fill(lambda: e.line(f"{name}.cell_contents = {e.expr(content)}"))
    return name


def function_globals(e: Emitter, value: FunctionValue) -> str:
    """The dict of globals of a function, outside or made inside."""
    owner = value.globals_of
    assert owner.real is not None
    if owner.source is not None:
        return e.arg(FunctionGlobals(owner.source))
    return e.constant(owner.real.__globals__, "globals_")


def _function(e: Emitter, value: FunctionValue) -> str:
    cells = e.exprs(list(value.cells or ()))
    name = e.let(
        value.name,
        f"{e.helper(runtime.make_function)}({e.constant(value.code, 'code')},"
        f" {function_globals(e, value)}, ({e.expr(Const(value.name))},"
        f" {e.expr(Const(value.qualname))}),"
        f" {e.expr(value.defaults or NONE)}, ({cells}), {e.expr(value.kwdefaults or NONE)})",
    )
    e.built(value, name)
    for field, held in value.fields.items():
        e.line(f"{name}.__{field}__ = {e.expr(held)}")
    if "annotate" in value.fields and isinstance(value.annotations, DictValue):
        # They were asked for, and perhaps changed then.
        asked = e.let("annotations", f"{name}.__annotations__")
        e.built(value.annotations, asked)
        e.line(f"{asked}.clear()")
        e.line(f"{asked}.update({{{e.dict_items(value.annotations)}}})")
    elif value.annotations is not None:
        e.line(f"{name}.__annotations__ = {e.expr(value.annotations)}")
    e.fill_attributes(value, name)
    return name


def _bound_method(e: Emitter, value: BoundMethod) -> str:
    func, obj = e.expr(value.func), e.expr(value.obj)
    if value.cls is types.MethodType:
        return e.let("method", f"{e.constant(types.MethodType, 'MethodType')}({func}, {obj})")
    of_class = isinstance(getattr(value.func, "value", None), types.ClassMethodDescriptorType)
    # Without the type, CPython crashes for methods that ask for it (METH_METHOD).
    bound = f"None, {obj}" if of_class else f"{obj}, type({obj})"
    return e.let("method", f"{func}.__get__({bound})")


_RULES: dict[type, Rule] = {
    Const: _const,
    SymbolValue: lambda e, value: e.output(value.node),
    Known: lambda e, value: e.constant(value.value, getattr(value.value, "__name__", "known")),
    Alias: lambda e, value: e.let(
        "alias", f"{e.helper(runtime.alias_again)}({e.constant(value.value)})"
    ),
    Lazy: lambda e, value: e.constant(value.real),
    NodeValue: _node,
    ArrayValue: _array,
    TupleValue: _tuple,
    ListValue: _list,
    DictValue: _dict,
    SetValue: _set,
    SliceValue: lambda e, value: f"slice({e.exprs(value.parts)})",
    ObjectValue: _object,
    PayloadValue: _payload,
    ExceptionValue: _exception,
    CellValue: _cell,
    FunctionValue: _function,
    BoundMethod: _bound_method,
    PropertyValue: lambda e, value: e.let(
        "descriptor", f"{e.kind(value.cls)}({e.exprs(value.parts)})"
    ),
    SuperValue: lambda e, value: e.let("super_", f"super({e.exprs([value.start, value.obj])})"),
}
rebuilds = registers(_RULES)  # how values of a class are rebuilt, for the modules above this one

"""``dict``, ``OrderedDict`` and ``defaultdict``."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from dynacap.values import data_model as dm
from dynacap.values.base import MISSING, Const, Known, UserRaise, Value
from dynacap.values.container import DictValue, TupleValue, fresh_dict
from dynacap.values.iterator import walks
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import (
    NONE,
    Operation,
    giving_self,
    handles,
    handles_each,
    is_none,
    methods,
    not_implemented,
    raise_with,
    unordered,
)
from dynacap.values.library.sequences import same_or_equal
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_ALL = (dict, OrderedDict, defaultdict)
_PLAIN_ITER = {id(dict.__iter__), id(OrderedDict.__iter__)}


handles(dict.__new__)(lambda t, cls, /, *args, **kwargs: DictValue(cls.known()))


def _register_update(what: str, *targets: Any) -> None:
    handles(*targets)(lambda t, self, /, *args, **kwargs: _update(t, self, what, args, kwargs))


_register_update("dict expected", dict.__init__)
_register_update("expected", OrderedDict.__init__)
_register_update("update expected", dict.update, OrderedDict.update)


@handles(defaultdict.__init__)
def _init_default(t: Tracer, self: DictValue, /, *args: Value, **kwargs: Value) -> None:
    factory = args[0] if args else Const(None)
    if not is_none(factory) and t.lookup(factory.cls, "__call__") is MISSING:
        t.raise_error(TypeError, "first argument must be callable or None")
    self.default = factory
    _update(t, self, "defaultdict expected", args[1:], kwargs)


def _update(
    t: Tracer, self: DictValue, what: str, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> None:
    if len(args) > 1:
        t.raise_error(TypeError, f"{what} at most 1 argument, got {len(args)}")
    for source in args:
        merge(t, self, source)
    for name, value in kwargs.items():
        _store(t, self, Const(name), value)


def merge(t: Tracer, self: DictValue, source: Value) -> None:
    """Add what a mapping or an iterable of pairs holds."""
    if isinstance(source, DictValue) and id(t.lookup(source.cls, "__iter__")) in _PLAIN_ITER:
        for key, value in source.items(t):
            _store(t, self, key, value)
        return
    keys = dm.find_attribute(t, source, "keys")
    if keys is not None:
        for key in elements(t, t.call(keys, [])):
            _store(t, self, key, dm.get_item(t, source, key))
        return
    for count, pair in enumerate(dm.walk(t, source)):
        _store_pair(t, self, _pair_of(t, pair, count), count)


def _pair_of(t: Tracer, pair: Value, index: int) -> list[Value]:
    try:
        return elements(t, pair)
    except UserRaise as raised:
        if not issubclass(raised.exc.cls, TypeError):
            raise
        if t.lookup(pair.cls, "__iter__") is not MISSING:  # what failed then hangs on the Python
            t.graph_break("bad-arguments", f"{pair.describe()} gives no pair of a dictionary")
        return t.raise_real(error_of(dict, [*[(0, 0)] * index, None]))


def _store_pair(t: Tracer, self: DictValue, pair: list[Value], index: int) -> None:
    if len(pair) != 2:
        t.raise_error(
            ValueError,
            f"dictionary update sequence element #{index} has length {len(pair)}; 2 is required",
        )
    _store(t, self, pair[0], pair[1])


def _store(t: Tracer, self: DictValue, key: Value, value: Value) -> None:
    """Plain dicts store without asking; an OrderedDict's subclass may have its own way."""
    if issubclass(self.cls, OrderedDict):
        dm.set_item(t, self, key, value)
    else:
        store(t, self, key, value)


@handles(*methods("__getitem__", *_ALL))
def _getitem(t: Tracer, self: DictValue, key: Value, /) -> Value:
    found = self.get(t, t.key_of(key))
    if found is not None:
        return found
    if self.cls is not dict and t.lookup(self.cls, "__missing__") is not MISSING:
        return dm.call_special(t, self, "__missing__", [key])
    raise_with(t, KeyError, key)


@handles(defaultdict.__missing__)
def _missing(t: Tracer, self: DictValue, key: Value, /) -> Value:
    if self.default is None or is_none(self.default):
        raise_with(t, KeyError, key)
    value = t.call(self.default, [])
    if _KEEPS_STORED:
        return _setdefault(t, self, key, value) or value
    dm.set_item(t, self, key, value)
    return value


_sample: defaultdict[int, int] = defaultdict(lambda: _sample.setdefault(0, 1) + 1)
_KEEPS_STORED = _sample[0] == 1  # what the factory itself stored under the key, since 3.14


handles(vars(defaultdict)["default_factory"])(lambda t, self, /: self.default or Const(None))


@handles(*methods("__setitem__", *_ALL))
def store(t: Tracer, self: DictValue, key: Value, value: Value, /) -> None:
    """``dict[key] = value``, whatever a subclass makes of it."""
    self.set(t, t.key_of(key), key, value)


@handles(*methods("__delitem__", *_ALL))
def _delitem(t: Tracer, self: DictValue, key: Value, /) -> None:
    if not self.delete(t, t.key_of(key)):
        raise_with(t, KeyError, key)


@handles(dict.setdefault)
def _setdefault(t: Tracer, self: DictValue, key: Value, default: Value = NONE, /) -> Value:
    host_key = t.key_of(key)
    found = self.get(t, host_key)
    if found is None:
        self.set(t, host_key, key, default)
    return found or default


@handles(OrderedDict.setdefault)
def _setdefault_ordered(t: Tracer, self: DictValue, key: Value, default: Value = NONE) -> Value:
    if dm.contains(t, self, key):
        return dm.get_item(t, self, key)
    dm.set_item(t, self, key, default)
    return default


handles(dict.pop)(lambda t, self, key, default=None, /: pop_key(t, self, key, default))


@handles(OrderedDict.pop)
def _pop_ordered(t: Tracer, self: DictValue, key: Value, default: Value | None = None) -> Value:
    t.call(Known(hash), [key])  # by itself, not as a dict does; also an empty one asks
    return pop_key(t, self, key, default)


def pop_key(t: Tracer, self: DictValue, key: Value, default: Value | None) -> Value:
    """Remove a key and give its value; an empty dict does not ask for its hash."""
    asks_all = self.real is None or t.lookup(key.cls, "__hash__") is None
    if asks_all and not self.keys(t):
        return default if default is not None else raise_with(t, KeyError, key)
    host_key = t.key_of(key)
    found = self.get(t, host_key)
    if found is not None:
        self.delete(t, host_key)
        return found
    if default is None:
        raise_with(t, KeyError, key)
    return default


handles(dict.popitem)(lambda t, self, /: _pop_end(t, self, Const(True)))


@handles(OrderedDict.popitem)
def _pop_end(t: Tracer, self: DictValue, last: Value = Const(True)) -> Value:
    keys = self.keys(t)
    if not keys:
        kind: Any = OrderedDict if issubclass(self.cls, OrderedDict) else dict
        t.raise_real(error_of(kind.popitem, kind()))
    key = keys[-1 if last.constant() else 0]
    pair = TupleValue([self.key_value(t, key), self.present(t, key)])
    self.delete(t, key)
    self.swept |= self.cls is dict
    return pair


@handles(OrderedDict.move_to_end)
def _move_to_end(t: Tracer, self: DictValue, key: Value, last: Value = Const(True)) -> None:
    host_key = t.key_of(key)
    if self.get(t, host_key) is None:
        raise_with(t, KeyError, key)
    others = [] if last.constant() else [k for k in self.keys(t) if k != host_key]
    for one in (host_key, *others):
        value, keyval = self.present(t, one), self.key_value(t, one)
        self.delete(t, one)
        self.set(t, one, keyval, value)


def copy_dict(t: Tracer, self: DictValue) -> DictValue:
    """A new dict of the same kind with the same entries."""
    kind: type = dict
    if issubclass(self.cls, (OrderedDict, defaultdict)):
        kind = self.cls
        if kind not in (OrderedDict, defaultdict):
            t.graph_break("copy-of-subclass", f"copy of a {kind.__name__}")
    made = fresh_dict(t, self.items(t), kind)
    made.default = self.default
    return made


@handles(*methods("fromkeys", *_ALL))
def _fromkeys(t: Tracer, cls: Value, iterable: Value, value: Value = NONE, /) -> Value:
    made = t.call(cls, [])
    for key in elements(t, iterable):
        dm.set_item(t, made, key, value)
    return made


@handles(*methods("__or__", *_ALL))
def _or(t: Tracer, self: DictValue, other: Value, /) -> Value:
    if not isinstance(other, DictValue):
        return not_implemented()
    made = copy_dict(t, self)
    merge(t, made, other)
    return made


@handles(*methods("__ror__", *_ALL))
def _ror(t: Tracer, self: DictValue, other: Value, /) -> Value:
    if not isinstance(other, DictValue):
        return not_implemented()
    made = fresh_dict(t, other.items(t), self.cls)
    made.default = self.default
    merge(t, made, self)
    return made


handles(*methods("__ior__", *_ALL))(giving_self(merge))


def equal_dicts(t: Tracer, left: DictValue, right: Value, wanted: bool) -> Value:
    """Whether both hold equal values under equal keys; two OrderedDicts compare in order."""
    if not isinstance(right, DictValue):
        return not_implemented()
    keys, others = left.keys(t), right.keys(t)
    ordered = issubclass(left.cls, OrderedDict) and issubclass(right.cls, OrderedDict)
    if (keys != others) if ordered else (set(keys) != set(others)):
        return Const(not wanted)
    for key in keys:
        if not same_or_equal(t, left.present(t, key), right.present(t, key)):
            return Const(not wanted)
    return Const(wanted)


_PLAIN_ROWS: dict[str, Operation] = {
    "__contains__": lambda t, self, key, /: Const(self.get(t, t.key_of(key)) is not None),
    "__len__": lambda t, self, /: Const(len(self.keys(t))),
    "__iter__": lambda t, self, /: walks(t, self, "keys"),
    "__reversed__": lambda t, self, /: walks(t, self, "keys", backwards=True),
    "get": lambda t, self, key, default=NONE, /: self.get(t, t.key_of(key)) or default,
    "clear": lambda t, self, /: self.clear(t),
    "copy": lambda t, self, /: copy_dict(t, self),
    "__copy__": lambda t, self, /: copy_dict(t, self),
    "__eq__": lambda t, self, other, /: equal_dicts(t, self, other, True),
    "__ne__": lambda t, self, other, /: equal_dicts(t, self, other, False),
    **dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), unordered),
}
handles_each(_PLAIN_ROWS, *_ALL)

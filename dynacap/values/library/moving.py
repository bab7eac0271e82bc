"""Methods of sequences that move elements without looking at them: the real ones do it.

They run on what the value holds, so it is they who say what they refuse, and in which words.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from dynacap.values.base import Value
from dynacap.values.container import ListValue
from dynacap.values.library.handlers import handles
from dynacap.values.library.sequences import Sequence, new_sequence, of_subclass
from dynacap.values.stand_in import run
from dynacap.values.tracer import Tracer

_GIVE_NEW = "copy __copy__ __mul__ __rmul__"
_METHODS: dict[Any, str] = {
    list: f"insert pop clear reverse __delitem__ __imul__ {_GIVE_NEW}",
    tuple: _GIVE_NEW,
    deque: "append appendleft insert pop popleft clear reverse rotate"
    f" __getitem__ __setitem__ __delitem__ __imul__ {_GIVE_NEW}",
}
_READ = frozenset({"__getitem__", *_GIVE_NEW.split()})
# which operand is an element; before it come numbers and slices
_ELEMENT = {"append": 0, "appendleft": 0, "insert": 1, "__setitem__": 1}


def _held(self: Sequence, kind: Any) -> Any:
    if kind is list:
        return self.items
    return deque(self.items, self.maxlen) if isinstance(self, ListValue) else tuple(self.items)


def _register(kind: Any, name: str) -> None:
    method = vars(kind)[name]

    @handles(method)
    def move(t: Tracer, self: Sequence, /, *operands: Value) -> Value | None:
        if kind is deque is not self.cls and name in _GIVE_NEW:
            return of_subclass(t, self, deque.__imul__, *operands)  # type: ignore[arg-type]
        held = _held(self, kind)
        split = _ELEMENT.get(name, len(operands))
        elements = operands[split:]
        found = run(t, lambda *given: method(held, *given, *elements), [*operands[:split]], {})
        if name not in _READ:
            self.state += name not in ("__setitem__", "reverse")  # type: ignore[union-attr]
            self.items[:] = held
            t.touch(self)
        if found is held and (kind is not tuple or self.cls is tuple):
            return self
        if isinstance(found, Value):
            return t.force(found)
        return None if found is None else new_sequence([*found], self)


for _kind, _names in _METHODS.items():
    for _name in _names.split():
        if _name in vars(_kind):
            _register(_kind, _name)

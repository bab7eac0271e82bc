"""Identity of an object, kept without keeping the object alive where Python allows it."""

import types
import weakref
from typing import Any

from dynacap.guards.raw import HEAP_TYPE, is_a, type_flags

# Cheap, immutable and shared; holding one holds nothing of the user's that matters.
_HELD_ANYWAY = frozenset(
    {
        types.CodeType,
        types.WrapperDescriptorType,
        types.MethodDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
    }
)


def _lives_on(obj: object) -> bool:
    """Whether holding ``obj`` costs nothing: static types, code, what C modules define."""
    if type(obj) is types.BuiltinFunctionType:
        home = obj.__self__
        return type(home) is types.ModuleType and vars(home).get(obj.__name__) is obj
    if type(obj) in _HELD_ANYWAY:
        return True
    return is_a(obj, type) and not type_flags(obj) & HEAP_TYPE


class Ref:
    """Equal to another Ref to the same object; holds it weakly unless ``strong``.

    ``strong`` objects are those that cannot be referred to weakly (constants, lists, objects with
    ``__slots__``) and those that live on in any case.  A caller that must not keep a user's object
    alive looks at the flag.
    """

    __slots__ = ("_target", "ident", "strong")

    def __init__(self, obj: object) -> None:
        self.ident = id(obj)
        self.strong = True
        self._target: object = obj
        if not _lives_on(obj):
            try:
                self._target = weakref.ref(obj)
                self.strong = False
            except TypeError:
                pass  # objects of this type have no room for weak references

    def get(self) -> object:
        """The object, or None once it is dead."""
        return self._target if self.strong else self._target()  # type: ignore[operator]

    def weak(self) -> "weakref.ref[Any]":
        """The weak reference; only where the object is not held."""
        assert isinstance(self._target, weakref.ref)
        return self._target

    def refers_to(self, obj: object) -> bool:
        """Whether the object is alive and is ``obj``."""
        if self.strong:
            return self._target is obj
        return obj is not None and self._target() is obj  # type: ignore[operator]

    @property
    def dead(self) -> bool:
        """Whether the object is gone, so that nothing will ever be it again."""
        return not self.strong and self._target() is None  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        # CPython gives each object one weak reference without callback, so identity will do.
        return type(other) is Ref and self._target is other._target

    def __hash__(self) -> int:
        return hash(self.ident)

    def __repr__(self) -> str:
        return "<an object that is gone>" if self.dead else describe(self.get())


def describe(obj: object) -> str:
    """A short name for an object, without running its ``__repr__``."""
    for kind, name_of in _NAMED.items():
        if is_a(obj, kind):
            return name_of(obj)
    return f"<{_type_name(type(obj))} object at {id(obj):#x}>"


def _type_name(cls: object) -> str:
    # Through type's own descriptors: a metaclass may define __name__ otherwise.
    fields = type.__dict__
    module, qualname = fields["__module__"].__get__(cls), fields["__qualname__"].__get__(cls)
    return str(qualname) if module == "builtins" else f"{module}.{qualname}"


def _function_name(function: object) -> str:
    return f"function {type(function).__dict__['__qualname__'].__get__(function)}"


def _module_name(module: object) -> str:
    fields: Any = types.ModuleType.__dict__
    names = fields["__dict__"].__get__(module)
    name = names.get("__name__")
    return f"module {name}" if type(name) is str else "a module"


_NAMED = {
    type: _type_name,
    types.FunctionType: _function_name,
    types.BuiltinFunctionType: _function_name,
    types.ModuleType: _module_name,
}

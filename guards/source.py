"""Where a value came from: a path of steps that reads it again on a later call.

A source is a root (a value of the flat vector, an object that the entry holds, a module) or one
step from another source.  ``step`` takes the base's value and gives this one's, or MISSING, and
runs no user code; the C checker's steps, chosen by ``op``, do the same.  ``name()`` says it in the
user's words.

Thousands are made in each capture, so these are plain slotted classes with the hash computed once.
They are never changed after they are made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from dynacap.guards import raw
from dynacap.guards.constant import ConstKey, is_constant, same_constant
from dynacap.guards.raw import MISSING
from dynacap.guards.ref import Ref, describe


class Held:
    """An object that is kept alive, compared by identity."""

    __slots__ = ("obj",)

    def __init__(self, obj: object) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return type(other) is Held and self.obj is other.obj

    def __hash__(self) -> int:
        return hash(id(self.obj))


class Source:
    """One step from ``base`` (None for a root); ``key`` says which, in hashable form."""

    __slots__ = ("__weakref__", "_hash", "base", "key")
    op: ClassVar[str]
    base: "Source | None"
    key: Any
    _hash: int

    def __init__(self, base: "Source | None", key: object = None) -> None:
        self.base = base
        self.key = key
        self._hash = hash((self.op, key, None if base is None else base._hash))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        left: Source | None = self
        right: object = other
        while left is not right:  # a loop: paths through linked lists are long
            if left is None or not isinstance(right, Source):
                return False
            if left._hash != right._hash or left.op != right.op:
                return False
            if type(left.key) is not type(right.key) or left.key != right.key:
                return False
            left, right = left.base, right.base
        return True

    def step(self, value: object) -> object:
        """This source's value, given the base's (for roots: the flat vector), or MISSING."""
        raise NotImplementedError

    def name(self) -> str:
        """The expression that a user would write for it."""
        raise NotImplementedError

    def root(self) -> "Source":
        """The source at the start of the path."""
        at = self
        while at.base is not None:
            at = at.base
        return at

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name()}>"


class Step(Source):
    """A source that has a base; made as ``Kind(base)`` or ``Kind(base, key)``."""

    __slots__ = ()
    base: Source

    if TYPE_CHECKING:  # at run time Source's own serves, without the cost of a second call

        def __init__(self, base: Source, key: object = None) -> None: ...


class Local(Source):
    """The value at ``index`` of the flat vector: the function itself, an argument, a cell."""

    __slots__ = ("_name", "names_of_items")
    op = "local"

    def __init__(self, index: int, name: str, names_of_items: tuple[str, ...] = ()) -> None:
        super().__init__(None, index)
        self._name = name
        self.names_of_items = names_of_items  # of ``*args`` that are handed on to a function

    @property
    def index(self) -> int:
        """The position in the flat vector."""
        index: int = self.key
        return index

    def step(self, value: object) -> object:
        flat: tuple[object, ...] = value  # type: ignore[assignment]
        return flat[self.index] if self.index < len(flat) else MISSING

    def name(self) -> str:
        return self._name


class Const(Source):
    """An object that the entry holds, such as a library's module; never one of the user's."""

    __slots__ = ("_name",)
    op = "const"

    def __init__(self, obj: object, name: str | None = None) -> None:
        super().__init__(None, Held(obj))
        self._name = name

    @property
    def obj(self) -> object:
        """The object."""
        return self.key.obj

    def step(self, value: object) -> object:
        return self.obj

    def name(self) -> str:
        if self._name is not None:
            return self._name
        return repr(self.obj) if is_constant(self.obj) else describe(self.obj)


class SysModule(Source):
    """The module of that name, if it is imported."""

    __slots__ = ()
    op = "sys_module"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def step(self, value: object) -> object:
        return raw.sys_module(self.key)

    def name(self) -> str:
        return f"sys.modules[{self.key!r}]"


class FunctionGlobals(Step):
    """The dict of globals that a Python function reads."""

    __slots__ = ()
    op = "function_globals"

    def step(self, value: object) -> object:
        return raw.function_field(value, "__globals__")

    def name(self) -> str:
        return f"{self.base.name()}.__globals__"


class FunctionBuiltins(Step):
    """The dict of builtins that a Python function reads when a global is not there."""

    __slots__ = ()
    op = "function_builtins"

    def step(self, value: object) -> object:
        return raw.function_field(value, "__builtins__")

    def name(self) -> str:
        return f"{self.base.name()}.__builtins__"


class ClosureCell(Step):
    """The cell, not yet its contents, of a function's ``i``-th free variable."""

    __slots__ = ("_variable",)
    op = "closure_cell"

    def __init__(self, fn: Source, i: int, name: str) -> None:
        super().__init__(fn, i)
        self._variable = name

    def step(self, value: object) -> object:
        cells = raw.function_field(value, "__closure__")
        return MISSING if cells is MISSING or cells is None else raw.sequence_item(cells, self.key)

    def name(self) -> str:
        return self._variable


class CellContents(Step):
    """What a cell holds."""

    __slots__ = ("_variable",)
    op = "cell_contents"

    def __init__(self, cell: Source, name: str) -> None:
        super().__init__(cell, None)
        self._variable = name

    def step(self, value: object) -> object:
        return raw.cell_contents(value)

    def name(self) -> str:
        return self._variable


class FunctionDefault(Step):
    """A function's ``i``-th positional default."""

    __slots__ = ()
    op = "function_default"

    def step(self, value: object) -> object:
        found = raw.function_field(value, "__defaults__")
        return MISSING if found is MISSING or found is None else raw.sequence_item(found, self.key)

    def name(self) -> str:
        return f"{self.base.name()}.__defaults__[{self.key}]"


class InstanceDict(Step):
    """The dict that holds an object's own attributes."""

    __slots__ = ()
    op = "instance_dict"

    def step(self, value: object) -> object:
        return raw.instance_dict(value)

    def name(self) -> str:
        return f"{self.base.name()}.__dict__"


def dict_key(key: object) -> object:
    """A dict's key in the form that sources and guards keep it: hashable, typed, exact."""
    if type(key) is str:
        return key
    return ConstKey(key) if is_constant(key) else Ref(key)


def key_matches(kept: Any, found: object) -> bool:
    """Whether a key found in a dict is the one that was kept."""
    if type(kept) is Ref:
        return kept.refers_to(found)
    wanted = kept.value if type(kept) is ConstKey else kept
    return same_constant(wanted, found)


PLAIN_KEYS = frozenset({type(None), bool, int, float, complex, str, bytes})


def lacks_constant(mapping: Any, key: object) -> bool:
    """Whether a dict answers for no key of its own when it is asked for a constant.

    An equal one would do (``True`` for ``1``), and so may one whose class says itself what it is
    equal to; that is not asked.
    """
    keys = raw.dict_keys(mapping) or ()
    if not PLAIN_KEYS.issuperset(map(type, keys)) and any(map(says_what_it_equals, keys)):
        return False
    return not dict.__contains__(mapping, key)


def says_what_it_equals(key: object) -> bool:
    """Whether an object's class has an ``__eq__`` of its own that may be the user's code."""
    own = raw.type_lookup(type(key), "__eq__") is not object.__dict__["__eq__"]
    return own and not is_constant(key)


def find_item(obj: object, kept: Any) -> object:
    """The value under a kept key, in the storage of a dict or of a subclass of dict."""
    if type(kept) is str:
        return raw.dict_item(obj, kept)
    # Other keys are found by looking at each: hashing could meet a user's __eq__ on the way.
    for found in raw.dict_keys(obj) or ():
        if key_matches(kept, found):
            return value_at(obj, found)
    return MISSING


def value_at(obj: Any, key: object) -> object:
    """The value under this very key object of a dict, which is not asked what it equals."""
    for found, value in dict.items(obj):
        if found is key:
            return value
    return MISSING


class DictItem(Step):
    """The value that a dict, or the storage of a subclass of dict, has under a key."""

    __slots__ = ()
    op = "dict_item"

    def __init__(self, mapping: Source, key: object) -> None:
        super().__init__(mapping, key if type(key) is str else dict_key(key))

    @property
    def dict_key(self) -> object:
        """The key itself; None if it was an object that is gone."""
        if type(self.key) is Ref:
            return self.key.get()
        return self.key.value if type(self.key) is ConstKey else self.key

    def step(self, value: object) -> object:
        return find_item(value, self.key)

    def name(self) -> str:
        style = _item_styles.get(self.base.op)
        if style is not None and type(self.key) is str:
            return style(self.base, self.key)
        return f"{self.base.name()}[{self.key!r}]"


_MODULE_PARTS = frozenset({"_parameters", "_buffers", "_modules"})  # where nn.Module keeps them


def _attribute_name(mapping: Source, key: str) -> str:
    return f"{mapping.base.name()}.{key}"  # type: ignore[union-attr]


def _variable_name(mapping: Source, key: str) -> str:
    return key


def _module_part_name(mapping: Source, key: str) -> str:
    holder = mapping.base
    if mapping.key in _MODULE_PARTS and type(holder) is InstanceDict:
        owner = holder.base.name()
        return f"{owner}[{key}]" if key.isdigit() else f"{owner}.{key}"
    return f"{mapping.name()}[{key!r}]"


_item_styles: dict[str, Callable[[Source, str], str]] = {
    "instance_dict": _attribute_name,
    "function_globals": _variable_name,
    "function_builtins": _variable_name,
    "dict_item": _module_part_name,
}


class DictKey(Step):
    """The ``i``-th key of a dict, in the order of iteration."""

    __slots__ = ()
    op = "dict_key"

    def step(self, value: object) -> object:
        keys = raw.dict_keys(value)
        return MISSING if keys is None or self.key >= len(keys) else keys[self.key]

    def name(self) -> str:
        return f"list({self.base.name()})[{self.key}]"


class SeqItem(Step):
    """An item of a list or tuple, or of the storage of a subclass of one."""

    __slots__ = ()
    op = "seq_item"

    def step(self, value: object) -> object:
        return raw.sequence_item(value, self.key)

    def name(self) -> str:
        base = self.base
        if isinstance(base, Local) and self.key < len(base.names_of_items):
            name: str = base.names_of_items[self.key]
            return name
        return f"{base.name()}[{self.key}]"


class DequeItem(Step):
    """An item of a deque."""

    __slots__ = ()
    op = "deque_item"

    def step(self, value: object) -> object:
        return raw.deque_item(value, self.key)

    def name(self) -> str:
        return f"{self.base.name()}[{self.key}]"


class Attr(Step):
    """An attribute defined in C or by ``__slots__``: ``fn.__code__``, ``tensor.grad``."""

    __slots__ = ()
    op = "attr"

    def step(self, value: object) -> object:
        return raw.field(value, self.key)

    def name(self) -> str:
        return f"{self.base.name()}.{self.key}"


class TypeOf(Step):
    """The real type of an object, whatever its ``__class__`` says."""

    __slots__ = ()
    op = "type_of"

    def step(self, value: object) -> object:
        return type(value)

    def name(self) -> str:
        return f"type({self.base.name()})"


class ClassAttr(Step):
    """What a class or its bases define under a name, as it stands there: not bound, not called."""

    __slots__ = ()
    op = "class_attr"

    def step(self, value: object) -> object:
        return raw.class_attribute(value, self.key)

    def name(self) -> str:
        return f"{self.base.name()}.{self.key}"


class SuperAttr(Step):
    """What the classes after ``after`` in the MRO define under a name, as it stands there."""

    __slots__ = ()
    op = "super_attr"

    def __init__(self, cls: Source, after: type, name: str) -> None:
        super().__init__(cls, (Ref(after), name))

    def step(self, value: object) -> object:
        after, name = self.key
        return raw.super_attribute(value, after.get(), name)

    def name(self) -> str:
        after, name = self.key
        owner = self.base.base if type(self.base) is TypeOf and self.base.base else self.base
        return f"super({after!r}, {owner.name()}).{name}"

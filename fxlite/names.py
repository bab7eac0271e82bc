"""Where an object can be reached by name, and the names that generated source uses for it."""

import keyword
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynacap.fxlite.node import Node

# Where the functions that torch implements in C are public; the first that holds one names it.
_PUBLIC_HOMES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch._C._nn",
    "torch._C",
)
_MISSING = object()


def qualified_name(value: object) -> str | None:
    """``module.name`` under which exactly ``value`` is found now, or None."""
    for module, path in _candidates(value):
        if _lookup(module, path) is value:
            return f"{module}.{path}"
    return None


def _candidates(value: Any) -> list[tuple[str, str]]:
    """Places to look for ``value``, best first."""
    name = getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if module == "_operator":
        module = "operator"
    if isinstance(module, str) and module.startswith("torch.ops."):  # a higher-order operator
        return [(module, str(name))]
    overload = getattr(value, "_overloadname", None)
    if overload is not None or hasattr(value, "overloads"):
        return [("torch.ops", str(value))]
    if not isinstance(name, str):
        # torch.float32, torch.strided and their like print as their own names.
        head, _, tail = repr(value).rpartition(".")
        return [(head, tail)] if head == "torch" else []
    owner = getattr(value, "__objclass__", None)
    if owner is not None:  # a method of a class written in C, taken from the class
        return [("torch", f"Tensor.{name}"), (owner.__module__, f"{owner.__qualname__}.{name}")]
    homes = _PUBLIC_HOMES if str(module).startswith("torch") or module is None else ()
    qualified = getattr(value, "__qualname__", name)
    own = [(module, qualified)] if isinstance(module, str) else []
    return [*((home, name) for home in homes), *own]


def _lookup(module: str, path: str) -> object:
    top, *rest = f"{module}.{path}".split(".")
    value: object = sys.modules.get(top, _MISSING)
    for name in rest:
        if not name.isidentifier():
            return _MISSING
        try:
            value = getattr(value, name, _MISSING)
        except Exception:  # a module's __getattr__ may raise anything; then it is not there
            return _MISSING
    return value if module in sys.modules or module.startswith("torch.ops") else _MISSING


class _OwnNames(dict["Node", str]):
    """Each node is called by its own name."""

    def __missing__(self, node: "Node") -> str:
        return node.name


class GlobalNames:
    """The global names of one piece of generated source, none of them a local of it.

    ``preamble`` holds the import lines, ``values`` what cannot be written down and is handed to
    the code as it is, ``locals`` what nodes are called.
    """

    def __init__(self, taken: Collection[str], local: "dict[Node, str] | None" = None) -> None:
        self.locals = _OwnNames() if local is None else local
        self.preamble: list[str] = []
        self.values: dict[str, object] = {}
        self._taken = set(taken)
        self._modules: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._texts: dict[int, tuple[object, str]] = {}  # by id; the object keeps the id its own

    def reference(self, value: object, hint: str) -> str:
        """An expression that evaluates to exactly ``value``."""
        known = self._texts.get(id(value))
        if known is not None:
            return known[1]
        full = qualified_name(value)
        text = self.opaque(value, hint) if full is None else self._qualified(full)
        self._texts[id(value)] = (value, text)
        return text

    def _qualified(self, full: str) -> str:
        module, _, rest = full.partition(".")
        if module == "builtins":
            return rest
        alias = self._modules.get(module)
        if alias is None:
            alias = self._modules[module] = self._fresh(module)
            as_alias = "" if alias == module else f" as {alias}"
            self.preamble.append(f"import {module}{as_alias}")
        return f"{alias}.{rest}"

    def once(self, text: str, hint: str) -> str:
        """A name for what ``text`` evaluates to, computed once before the function is defined."""
        known = self._constants.get(text)
        if known is None:
            known = self._constants[text] = self._fresh(hint)
            self.preamble.append(f"{known} = {text}")
        return known

    def opaque(self, value: object, hint: str) -> str:
        """A name for a value that has no spelling; the text only shows what it is."""
        name = self._fresh(hint)
        self.values[name] = value
        self.preamble.append(f"# {name} is {type(value).__module__}.{type(value).__qualname__}")
        return name

    def _fresh(self, hint: str) -> str:
        name = hint
        number = 0
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name

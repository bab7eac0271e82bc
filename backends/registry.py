"""Backends by name: registered here, by an installed package, or in torch."""

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, overload

from dynacap import log
from dynacap.backends import torch_bridge
from dynacap.backends.verify.request import Verification, split
from dynacap.errors import InvalidBackend, UserError
from dynacap.fxlite import GraphModule

CompiledGraph = Callable[..., Any]
Backend = Callable[..., CompiledGraph]

OWN_GROUP = "dynacap.backends"
TORCH_GROUP = "torch_dynamo_backends"
# Ours that need torch: what registers each of them is loaded when it is asked for.
_LOADED_LATE = {"native": "dynacap.backends.native.backend"}

_registered: dict[str, Backend] = {}
_tags: dict[str, tuple[str, ...]] = {}


@overload
def register_backend(
    compiler_fn: None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable[[Backend], Backend]: ...
@overload
def register_backend(
    compiler_fn: Backend, name: str | None = None, tags: Sequence[str] = ()
) -> Backend: ...
def register_backend(
    compiler_fn: Backend | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Backend | Callable[[Backend], Backend]:
    """Make ``compiler_fn(graph_module, example_inputs) -> callable`` known under a name.

    A call or a decorator, with or without arguments; the name defaults to the function's.
    """
    if compiler_fn is None:
        return partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(
            "register_backend: compiler_fn must be a callable that takes (graph_module,"
            f" example_inputs), got {compiler_fn!r}"
        )
    if name is None:
        name = getattr(compiler_fn, "__name__", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"register_backend: name must be a non-empty string, got {name!r}")
    holder = _holder(name, compiler_fn)
    if holder is not None:
        raise ValueError(f"register_backend: name {name!r} is taken by {holder!r}; choose another")
    _registered[name] = compiler_fn
    _tags[name] = tuple(tags)
    return compiler_fn


def _holder(name: str, compiler_fn: Backend) -> object:
    """What else has the name already."""
    module = _LOADED_LATE.get(name)
    if module is not None and getattr(compiler_fn, "__module__", None) != module:
        return module
    held = _registered.get(name)
    return None if held is compiler_fn else held


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that ``backend=`` takes, sorted; asks torch for its own, which loads them."""
    excluded = set(exclude_tags or ())
    own = {name for name in _registered if not excluded.intersection(_tags[name])}
    own.update(_LOADED_LATE)
    own.update(point.name for point in importlib.metadata.entry_points(group=OWN_GROUP))
    return sorted(own.union(torch_bridge.backend_names(exclude_tags)) - (_registered.keys() - own))


def lookup_backend(
    backend: str | Backend,
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
) -> Backend:
    """The backend for a name, or for a callable itself; with ``mode`` and ``options`` bound.

    The option ``verify`` is every backend's: it puts the checks of :mod:`verify` around it.

    A callable from torch (``torch._inductor.compile_fx.compile_fx``, an ``aot_autograd``) is
    handed a ``torch.fx.GraphModule``.
    """
    if mode is not None and not isinstance(mode, str):
        raise TypeError(f"mode must be a string or None, got {mode!r}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must be a mapping or None, got {options!r}")
    verify, options = split(options)
    found = _found(backend, mode, options, dynamic)
    return found if verify is None else partial(verify, found)


def _found(
    backend: str | Backend,
    mode: str | None,
    options: Mapping[str, Any],
    dynamic: bool | None,
) -> Backend:
    if isinstance(backend, str):
        found = _by_name(backend, mode, options, dynamic)
    elif callable(backend):
        found = torch_bridge.bridged(backend)
    else:
        raise TypeError(
            "backend must be a name or a callable that takes (graph_module, example_inputs), got"
            f" {backend!r}; see dynacap.list_backends()"
        )
    if isinstance(found, torch_bridge.TorchBackend) and found.configured:
        return found
    return _with_options(found, mode, options)


def backend_name(backend: object) -> str:
    """What a backend is called in messages."""
    for name, registered in _registered.items():
        if registered is backend:
            return name
    backend = _itself(backend)
    known = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None)
    return str(known or type(backend).__name__)


def makes_functional(backend: object) -> bool:
    """Whether changes of inputs become changes of copies, which are written back at the end: in the
    native backend and in torch's.
    """
    itself = _itself(backend)
    return isinstance(itself, torch_bridge.TorchBackend) or itself is _registered.get("native")


def takes_floats(backend: object) -> bool:
    """Whether a graph may be given floats that vary: torch's own backends, and those of users that
    do not say ``takes_floats = True``, may fix them, unseen."""
    itself = _itself(backend)
    if getattr(itself, "takes_floats", False) is True:
        return True
    return any(itself is _registered.get(name) for name in ("eager", "interpreter", "native"))


def is_own(backend: object) -> bool:
    """Whether a backend does the same in each process with the same sources: two of ours do."""
    return any(backend is _registered.get(name) for name in ("eager", "native"))


def rests_itself(backend: object) -> bool:
    """Whether a backend sees by itself to when garbage is collected: to have that done now takes
    longer than it does."""
    return _itself(backend) is _registered.get("native")


def _itself(backend: object) -> object:
    """A backend without what was bound to it."""
    while isinstance(backend, partial):
        checked = isinstance(backend.func, Verification)
        backend = backend.args[0] if checked else backend.func
    return backend


def _by_name(
    name: str, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
) -> Backend:
    if name in _LOADED_LATE:
        importlib.import_module(_LOADED_LATE[name])
    if name in _registered:
        return _registered[name]
    loaded = _from_entry_point(name, OWN_GROUP)
    if loaded is not None:
        return register_backend(loaded, name=name)
    loaded = _from_entry_point(name, TORCH_GROUP)
    if loaded is not None:
        return torch_bridge.TorchBackend(loaded, name)
    found = torch_bridge.find_backend(name, mode, options, dynamic)
    if found is None:
        raise InvalidBackend(
            f"backend={name!r} is not known; there are: {', '.join(list_backends(None))}."
            " Register one with dynacap.register_backend, or pass the function itself"
        )
    return found


def _from_entry_point(name: str, group: str) -> Backend | None:
    for point in importlib.metadata.entry_points(group=group, name=name):
        try:
            loaded: Backend = point.load()
        except Exception as error:
            raise InvalidBackend(
                f"backend={name!r}: loading {point.value!r} (entry point {group!r}) failed:"
                f" {type(error).__name__}: {error}"
            ) from error
        return loaded
    return None


def _with_options(backend: Backend, mode: str | None, options: Mapping[str, Any] | None) -> Backend:
    given: dict[str, Any] = {}
    if mode is not None and mode != "default":
        given["mode"] = mode
    if options:
        given["options"] = dict(options)
    if not given:
        return backend
    for name in given:
        if not _accepts(backend, name):
            raise UserError(
                f"{name}={given[name]!r} was given, but backend {backend_name(backend)!r} takes"
                f" no {name}; drop the argument or choose another backend"
            )
    return partial(backend, **given)


def _accepts(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def warn_of_unused(backend: str, **given: Any) -> None:
    """Say, once, that a backend makes nothing of an argument for another."""
    for name, value in given.items():
        if value:
            log.warn_once((backend, name), f"backend {backend!r} has no use for {name}={value!r}")


def check_graph_module(value: object) -> GraphModule:
    """``value`` if it is a graph module, an error that says so if not."""
    if not isinstance(value, GraphModule):
        raise TypeError(f"graph_module must be a dynacap.fxlite.GraphModule, got {value!r}")
    return value

"""The public functions: ``compile`` and its friends."""

from __future__ import annotations

import functools
import sysconfig
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dynacap import log, marks, polyfills as _polyfills, totals
from dynacap.backends import lookup_backend
from dynacap.cache import Options, Session
from dynacap.compiled_module import compile_module, original
from dynacap.driver import Driver
from dynacap.hook import choose_hook, make_compiled_function, set_suspend_type
from dynacap.marks import is_compiling as is_compiling
from dynacap.reports import Explanation, explain_session
from dynacap.suspend import Suspend
from dynacap.values import (
    library as _library,  # registers the handlers
    torch_library as _torch_library,
)

set_suspend_type(Suspend)
_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_LIBRARY_FOLDERS = tuple(
    str(Path(folder).resolve())
    for folder in {
        sysconfig.get_paths()["stdlib"],
        sysconfig.get_paths()["platstdlib"],
        str(Path(torch.__file__).parent),
        str(Path(__file__).parent),
    }
)
_MODEL_FOLDERS = (str(Path(torch.__file__).parent / "nn" / "modules"),)


@functools.lru_cache(maxsize=4096)
def _is_library_file(filename: str) -> bool:
    if filename.startswith("<"):
        return True
    if filename.startswith(_MODEL_FOLDERS):
        return False
    return filename.startswith(_LIBRARY_FOLDERS) and "site-packages" not in filename.removeprefix(
        str(Path(torch.__file__).parent.parent)
    )


def _wanted(function: types.FunctionType) -> bool:
    """Whether a function that eager code calls is worth capturing."""
    return not _is_library_file(function.__code__.co_filename) and marks.of(function) is None


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "eager",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function, method, callable object or ``nn.Module``; also a decorator.

    ``model``: what to compile; without it, a decorator is returned.  ``fullgraph``: a graph break
    raises :class:`~dynacap.errors.Unsupported`.  ``backend``: a name of :func:`list_backends` or
    a callable ``backend(graph_module, example_inputs) -> callable``.  ``disable``: give the model
    back as it is.
    """
    _check("fullgraph", fullgraph, bool)
    _check("disable", disable, bool)
    if dynamic is not None:
        _check("dynamic", dynamic, bool)
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, disable=disable,
        )  # fmt: skip
    if not callable(model):
        raise TypeError(
            f"compile() got model={model!r} ({type(model).__name__}); it takes a function, a"
            " method, a callable object or an nn.Module"
        )
    if disable:
        return model
    session = Session(Options(lookup_backend(backend), fullgraph, dynamic))
    session.again = functools.partial(
        compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options
    )
    _sessions.add(session)
    return _compile_with(original(model), session)


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(
            f"compile() got {name}={value!r} ({type(value).__name__}); it takes a {kind.__name__}"
        )


def _compile_with(model: Any, session: Session) -> Any:
    if isinstance(model, torch.nn.Module):
        return compile_module(model, lambda call: _compile_with(call, session), session.again)
    if isinstance(model, types.MethodType):
        inner = _compile_with(model.__func__, session)
        return types.MethodType(inner, model.__self__)
    if isinstance(model, types.FunctionType):
        return _compile_function(model, session)
    if isinstance(model, type) or not isinstance(
        getattr(type(model), "__call__", None), types.FunctionType
    ):
        return _compile_function(_calling(model), session)
    return _compile_with(type(model).__call__.__get__(model), session)


def _calling(target: Callable[..., Any]) -> types.FunctionType:
    @functools.wraps(target, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return call  # type: ignore[return-value]


def _compile_function(function: types.FunctionType, session: Session) -> Any:
    driver = Driver(session, choose_hook(), _wanted)
    place = session.function_place(function)
    compiled = make_compiled_function(function, place.table, driver.finish)
    compiled._dynacap_session = session  # type: ignore[attr-defined]
    return compiled


def explain(model: Callable[..., Any], **compile_options: Any) -> Callable[..., Explanation]:
    """``explain(model)(*args)`` runs the model compiled and tells what was captured."""
    session = getattr(model, "_dynacap_session", None)

    def run(*args: Any, **kwargs: Any) -> Explanation:
        own = session
        target = model
        if own is None:
            own = Session(Options(lookup_backend(compile_options.get("backend", "eager"))))
            target = _compile_with(model, own)
        target(*args, **kwargs)
        return explain_session(own)

    return run


def reset() -> None:
    """Drop every entry of every compiled callable, the counters, and what the hook changed."""
    for session in list(_sessions):
        session.clear()
    totals.reset()
    choose_hook().reset()
    log.forget_warnings()


def counters() -> dict[str, Any]:
    """Totals: frames, graphs, ops, breaks, skipped, recompiles, and reasons with their counts."""
    return totals.read()


def disable(
    fn: Callable[..., Any] | None = None, *, recursive: bool = True, reason: str | None = None
) -> Any:
    """Never capture this function (and, if ``recursive``, what it calls); also a decorator."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable() got fn={fn!r} ({type(fn).__name__}); it takes a callable")
    return marks.put(fn, marks.Mark("disable", reason, recursive))


def graph_break(msg: str = "") -> None:
    """Break the graph here; does nothing in plain Python."""


marks.put(graph_break, marks.Mark("graph_break"))


def allow_in_graph(fn: Any) -> Any:
    """Put calls of this function into the graph as they are, without looking inside."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph() got fn={fn!r}; it takes a callable")
    return marks.put(fn, marks.Mark("allow"))


def disallow_in_graph(fn: Any) -> Any:
    """Break the graph at calls of this function."""
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(each) for each in fn]
    return marks.put(fn, marks.Mark("disable", "disallow_in_graph", recursive=False))


_ = (_library, _polyfills, _torch_library)

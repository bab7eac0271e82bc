"""The public functions: ``compile`` and its friends."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch

import dynacap.guards as guards  # of the package, whose __getattr__ would look for it here
from dynacap import log, marks, polyfills as _polyfills, totals
from dynacap.backends import lookup_backend
from dynacap.cache import Options, Session
from dynacap.compiled_module import call_module, call_of, compile_module, original, title_of
from dynacap.config import config
from dynacap.driver import Driver
from dynacap.errors import UserError
from dynacap.hook import bind_arguments, choose_hook, make_compiled_function
from dynacap.hook.user_code import is_users
from dynacap.marks import Mark, is_compiling as is_compiling
from dynacap.place import Place
from dynacap.reports import (
    Explanation,
    GuardReport,
    RecompileReport,
    Why,
    explain_session,
    guards_of,
    recompiles_of,
    session_of,
    why_of,
)
from dynacap.stance import STANCES, ErrorOnGraphBreak, Restoring, Stance
from dynacap.values import (
    array_library as _array_library,  # registers the handlers, as the others do
    library as _library,
    torch_library as _torch_library,
)

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
Fn = Callable[..., Any]
_COMPILES = "a function, a method, a callable object or an nn.Module"


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Fn | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function, method, callable object or ``nn.Module``; also a decorator.

    ``model``: what to compile; without it, a decorator is returned.  ``fullgraph``: a graph break
    raises :class:`~dynacap.errors.Unsupported`.  ``dynamic``: None makes a size or a number
    symbolic once it is seen to vary, True all sizes and ints from the start, False none ever.
    ``backend``: a name of :func:`list_backends` or a callable ``backend(graph_module,
    example_inputs) -> callable``, None for ``config.backend``; ``mode`` and ``options`` are handed
    to it.  ``disable``: give the model back as it is.
    """
    backend = config.backend if backend is None else backend
    _check_flag("fullgraph", fullgraph)
    _check_flag("disable", disable)
    if dynamic is not None:
        _check_flag("dynamic", dynamic)
    again = functools.partial(
        compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
        disable=disable,
    )  # fmt: skip
    found = lookup_backend(backend, mode=mode, options=options, dynamic=dynamic)
    if model is None:
        return again
    if isinstance(model, (staticmethod, classmethod)):
        return type(model)(again(model.__func__))
    if not callable(model) or isinstance(model, type):
        raise TypeError(
            f"compile() got model={model!r} ({type(model).__name__}); it takes {_COMPILES}."
            " Of a class, compile the instances or decorate the methods"
        )
    if disable or marks.of(model) is not None:
        return model
    return _compile_with(model, Options(found, fullgraph, dynamic), again)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"compile() got {name}={value!r} ({type(value).__name__}); it takes True or False"
        )


def _compile_with(model: Any, options: Options, again: Fn) -> Any:
    model = _unwrapped(model)
    if isinstance(model, torch.nn.Module):
        call = _compile_function(cast(types.FunctionType, call_module), options)
        call._dynacap_place.title = title_of(model)
        return compile_module(model, call, again)
    if isinstance(model, types.MethodType):
        return types.MethodType(_compile_with(model.__func__, options, again), model.__self__)
    if isinstance(model, types.FunctionType):
        return _compile_function(model, options)
    call = getattr(type(model), "__call__", None)  # noqa: B004 (the function itself is wanted)
    if isinstance(call, types.FunctionType):
        return types.MethodType(_compile_function(call, options), model)
    return _compile_function(_calling(model), options)


def _unwrapped(model: Any) -> Any:
    """What a compiled callable, ours or torch's, was made from."""
    while True:
        inner = original(model)
        if inner is model:
            if isinstance(model, torch.nn.Module):
                inner = vars(model).get("_modules", {}).get("_orig_mod")
            elif isinstance(getattr(model, "_dynacap_session", None), Session):
                inner = getattr(model, "function", None)
            else:
                inner = marks.wrapped_by_torch(model)
        if inner is None or inner is model:
            return model
        model = inner


def _calling(target: Fn) -> types.FunctionType:
    @functools.wraps(target, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return call  # type: ignore[return-value]


def make_driver(options: Options, make_place: Any = Place, wanted: Any = is_users) -> Driver:
    """What runs the functions of one compile call; ``reset`` knows of it."""
    session = Session(options, make_place)
    _sessions.add(session)
    return Driver(session, choose_hook(), wanted)


def _compile_function(function: types.FunctionType, options: Options) -> Any:
    driver = make_driver(options)
    session = driver.session
    place = session.function_place(driver.hook.original_code(function))
    compiled = make_compiled_function(function, place.table, driver.trampoline())
    compiled._dynacap_session = session  # type: ignore[attr-defined]
    compiled._dynacap_place = place  # type: ignore[attr-defined]
    return compiled


def explain(model: Any, **compile_options: Any) -> Callable[..., Explanation]:
    """``explain(model)(*args)`` calls the model once, compiled, and tells what was captured.

    Of a compiled model, everything that it captured so far is told.  ``compile_options`` are those
    of :func:`compile`.
    """
    session = getattr(model, "_dynacap_session", None)
    if session is not None and compile_options:
        raise UserError(
            f"explain() got {', '.join(compile_options)} for a model that is compiled already;"
            " give them to compile()"
        )

    def run(*args: Any, **kwargs: Any) -> Explanation:
        target = model if session is not None else compile(model, **compile_options)
        target(*args, **kwargs)
        return explain_session(target._dynacap_session)

    return run


def recompiles(compiled: Any) -> RecompileReport:
    """Why a compiled callable was captured again: for each time the guards that failed, expected
    and found, the user's lines behind them, how often, and what it cost in seconds."""
    return recompiles_of(compiled)


def why(compiled: Any, /, *args: Any, **kwargs: Any) -> Why:
    """Which entry a call with these arguments would run, or which guards of which entry it fails.

    Nothing is run or captured.  TypeError, as by the call, for arguments that do not fit.
    """
    session_of("why", compiled)
    function, args = _called(compiled, args)
    place, target = function._dynacap_place, function.function
    return why_of(place, (target, *bind_arguments(target, place.code, args, kwargs)))


def _called(compiled: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The compiled function behind a compiled callable, and all that it is called with."""
    if isinstance(compiled, torch.nn.Module):
        return call_of(compiled), (original(compiled), *args)
    if isinstance(compiled, types.MethodType):
        return compiled.__func__, (compiled.__self__, *args)
    return compiled, args


class _GuardsPackage(types.ModuleType):
    """``dynacap.guards`` is a package, and ``dynacap.guards(compiled)`` asks for guards."""

    def __call__(self, compiled: Any) -> GuardReport:
        """The guards of each entry of a compiled callable, in the user's words."""
        return guards_of(compiled)


guards.__class__ = _GuardsPackage


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


def disable(fn: Any = None, *, recursive: bool = True, reason: str | None = None) -> Any:
    """A function that is never captured and, if ``recursive``, nothing that it calls either.

    Also a decorator.  With ``recursive`` a wrapper is returned and ``fn`` itself stays as it is;
    without, ``fn`` itself is marked.  A module is marked by its ``forward``.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, torch.nn.Module):
        fn.forward = disable(fn.forward, recursive=recursive, reason=reason)
        return fn
    _check_callable("disable", fn)
    mark = Mark("disable", reason, recursive)
    if not recursive:
        marks.put(getattr(fn, "__func__", fn), mark)
        return fn
    if marks.of(fn) == mark:
        return fn
    hook = choose_hook()

    @functools.wraps(fn)
    def run_disabled(*args: Any, **kwargs: Any) -> Any:
        token = hook.enter(None)
        try:
            return fn(*args, **kwargs)
        finally:
            hook.exit(token)

    hook.mark_hidden(cast(types.FunctionType, run_disabled).__code__)
    return marks.put(run_disabled, mark)


def _check_callable(name: str, fn: object) -> None:
    if not callable(fn) or isinstance(fn, type):
        raise TypeError(f"{name}() got fn={fn!r} ({type(fn).__name__}); it takes a function")


def graph_break(msg: str = "") -> None:
    """Break the graph here; does nothing in plain Python."""


marks.put(graph_break, Mark("graph_break"))


def skip_frame(msg: str = "") -> None:
    """Have the frame that calls this run as plain Python; does nothing there.

    In a function that is inlined, the graph breaks here instead.
    """


marks.put(skip_frame, Mark("skip_frame"))


def set_stance(
    stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
) -> Any:
    """What compiled callables do from now on; also a context manager and a decorator.

    ``default``: as usual.  ``force_eager``: plain Python.  ``eager_on_recompile``: what is compiled
    already is used, all else is plain Python.  ``fail_on_recompile``: all else raises
    :class:`~dynacap.errors.RecompileError`.  ``eager_then_compile``: the first call of each
    function is plain.  ``force_backend`` compiles what is captured meanwhile.
    """
    if stance not in STANCES:
        raise UserError(f"set_stance() got {stance!r}; it takes {', '.join(sorted(STANCES))}")
    if skip_guard_eval_unsafe:
        raise UserError("set_stance() cannot skip guards: they are what makes compiled code right")
    if force_backend is not None and stance not in ("default", "eager_then_compile"):
        raise UserError(f"set_stance() got force_backend for {stance!r}, which compiles nothing")
    backend = None if force_backend is None else lookup_backend(force_backend)
    return Restoring(Stance(stance, backend))


marks.put(set_stance, Mark("forbid"))


def error_on_graph_break(error_on_graph_break: bool) -> ErrorOnGraphBreak:
    """A context manager or decorator inside which graph breaks raise, or do not, whatever
    ``fullgraph`` says; around calls or in compiled code."""
    return ErrorOnGraphBreak(error_on_graph_break)


def nonstrict_trace(fn: Any) -> Any:
    """A function whose calls go into the graph as they are, unseen; ``fn`` stays as it is."""
    _check_callable("nonstrict_trace", fn)

    @functools.wraps(fn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return marks.put(traced, Mark("allow"))


def _marking(name: str, fn: Any, mark: Mark) -> Any:
    if isinstance(fn, (list, tuple)):
        return [_marking(name, each, mark) for each in fn]
    _check_callable(name, fn)
    return marks.put(fn, mark)


def allow_in_graph(fn: Any) -> Any:
    """Put calls of this function (or of these) into the graph as they are, unseen."""
    return _marking("allow_in_graph", fn, Mark("allow"))


def disallow_in_graph(fn: Any) -> Any:
    """Break the graph at calls of this function (or of these); what it calls may be captured."""
    return _marking("disallow_in_graph", fn, Mark("disable", "disallow_in_graph", recursive=False))


def forbid_in_graph(fn: Any) -> Any:
    """Raise UserError where a call of this function (or of these) would be captured."""
    return _marking("forbid_in_graph", fn, Mark("forbid"))


def assume_constant_result(fn: Any) -> Any:
    """Call this function while capturing, with constant arguments, and take its result as fixed."""
    return _marking("assume_constant_result", fn, Mark("constant"))


Dims = int | list[int] | tuple[int, ...] | None


def mark_dynamic(
    t: torch.Tensor, index: Dims, *, min: int | None = None, max: int | None = None
) -> None:
    """Have sizes of ``t`` be symbolic from the first capture on.

    ``index``: a dimension or several.  ``min`` and ``max``: the sizes for which the graph has to
    hold, both included.  A program that works for one size alone, or a size outside the bounds,
    raises :class:`~dynacap.errors.UserError` when it is captured.
    """
    dims = _dims("mark_dynamic", t, index)
    _mark_dims(t, "_dynamo_dynamic_indices", dims)
    if min is not None or max is not None:
        ranges = {each.dim: each for each in getattr(t, "_dynamo_dynamic_range", ())}
        ranges.update((dim, DimRange(dim, min, max)) for dim in dims)
        t._dynamo_dynamic_range = set(ranges.values())  # type: ignore[attr-defined]


def maybe_mark_dynamic(t: torch.Tensor, index: Dims) -> None:
    """The same, but a program that works for one size alone is captured for that size."""
    _mark_dims(t, "_dynamo_weak_dynamic_indices", _dims("maybe_mark_dynamic", t, index))


def mark_static(t: Any, index: Dims = None) -> None:
    """Have sizes of ``t`` be constants however often they change; all of them without ``index``.

    For anything but a tensor it does nothing: what a module holds is constant until it changes.
    """
    if isinstance(t, torch.Tensor):
        _mark_dims(t, "_dynamo_static_indices", _dims("mark_static", t, index))


class DimRange(NamedTuple):
    """Bounds of a size, as ``torch._dynamo`` keeps them on a tensor too."""

    dim: int
    min: int | None
    max: int | None


def _mark_dims(t: torch.Tensor, mark: str, dims: list[int]) -> None:
    """Marks lie where ``torch._dynamo`` looks for them, and dynacap for torch's."""
    setattr(t, mark, {*getattr(t, mark, ()), *dims})


def _dims(name: str, t: object, index: Dims) -> list[int]:
    """The dimensions meant, counted from the front; all for None."""
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"{name}() got t={t!r} ({type(t).__name__}); it takes a tensor")
    wanted = range(t.dim()) if index is None else index
    dims = list(wanted) if isinstance(wanted, (list, tuple, range)) else [wanted]
    for dim in dims:
        if not -t.dim() <= dim < t.dim():
            raise IndexError(f"{name}() got index={dim!r} for a tensor of {t.dim()} dimensions")
    return [dim % t.dim() for dim in dims]


_ = (_array_library, _library, _polyfills, _torch_library)

"""Functions that touch the world: each breaks the graph, with a reason of its own."""

from __future__ import annotations

import asyncio
import builtins
import gc
import importlib
import inspect
import os
import random
import sys
import time
import traceback
import types
import typing
import warnings
import weakref
from typing import Any

from dynacap.hook.bodies import is_body
from dynacap.opcodes import decode
from dynacap.opcodes.analysis import LOOKS_AT_LOCALS
from dynacap.values.base import Const, Value, constant_or
from dynacap.values.natives import find_native, native
from dynacap.values.tracer import Tracer

# reason -> the module and the names of its functions
_ROWS: tuple[tuple[str, Any, str], ...] = (
    ("print", builtins, "print"),
    ("input-output", builtins, "input open"),
    ("dynamic-code", builtins, "compile"),
    ("class-creation", builtins, "__build_class__"),
    ("frame-introspection", sys, "getrefcount gettrace"),
    ("running-frame", builtins, "breakpoint"),
    ("running-frame", sys, "_getframe _getframemodulename setrecursionlimit settrace setprofile"),
    ("running-frame", inspect, "stack currentframe"),
    ("running-frame", traceback, "format_stack print_stack extract_stack"),
    ("import", builtins, "__import__"),
    ("import", importlib, "import_module reload"),
    ("clock", time, "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns sleep"),
    ("clock", time, "process_time thread_time localtime gmtime strftime ctime"),
    ("random", random, "random uniform randint randrange choice choices sample shuffle gauss"),
    ("random", random, "normalvariate getrandbits betavariate expovariate triangular"),
    ("random", random, "seed getstate setstate"),
    ("random", random.Random, "random getrandbits"),
    ("warning", warnings, "warn_explicit simplefilter filterwarnings resetwarnings"),
    ("signature", inspect, "getsource getmembers getmodule getfullargspec"),
    ("traceback", traceback, "format_exc print_exc"),
    ("garbage-collector", gc, "collect disable enable freeze get_objects get_referrers"),
    ("weak-reference", weakref, "ref proxy finalize WeakValueDictionary WeakSet"),
    ("async", asyncio, "run"),
    ("async", asyncio.BaseEventLoop, "run_until_complete run_forever"),
    ("async", asyncio.Runner, "run"),
    # A bound, a default, what an alias stands for: the first who asks has it worked out.
    ("type-parameters", typing.TypeVar, "__bound__ __constraints__ __default__"),
    ("type-parameters", typing.ParamSpec, "__default__"),
    ("type-parameters", typing.TypeVarTuple, "__default__"),
    ("type-parameters", getattr(typing, "TypeAliasType", None), "__value__"),
    ("system", os, "putenv system getcwd listdir remove mkdir makedirs urandom getpid"),
)


def _register(reason: str, owner: Any, names: str) -> None:
    for name in names.split():
        target = getattr(owner, name, None)
        target = getattr(target, "__func__", target)  # bound methods are looked up by it
        if target is not None and find_native(target) is None:
            native(target)(_breaker(reason, f"{owner.__name__}.{name}"))


def _breaker(reason: str, name: str) -> Any:
    def stop(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return t.graph_break(reason, f"{name.removeprefix('builtins.')} is called")

    return stop


@native(warnings.warn)
def _warn(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A warning that points at a caller has to be told where the callers stand."""
    level = constant_or(args[2] if len(args) > 2 else kwargs.get("stacklevel", Const(1)), 2)
    ways = "warning", "warning-of-caller", "running-frame"
    skips = "skip_file_prefixes" in kwargs
    return t.graph_break(ways[2 if skips else level != 1], "warnings.warn is called")


def _reader(function: Any) -> None:
    """A function that reads the variables of the running frame.  Before 3.13 what is read is kept
    with the frame, as is what ``exec`` adds: the next one to read finds it.
    """
    reason = "dynamic-code" if function in (exec, eval) else "frame-introspection"

    @native(function)
    def read(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        detail = f"{function.__name__} is called"
        own = len(args) <= (function in (exec, eval))
        code = t.running().code
        # Variables of comprehensions in a body show only in the frame of the original code.
        again = function is exec or frame_readers(code) > 1 or (is_body(code) and code.co_varnames)
        return t.graph_break("running-frame" if own and again else reason, detail)


def frame_readers(code: types.CodeType) -> int:
    """How often code loads something that reads the variables of its frame."""
    loads = (i.arg for i in decode(code).instructions if i.op in ("LOAD_GLOBAL", "LOAD_NAME"))
    return sum(name in LOOKS_AT_LOCALS for name in loads)


for _function in (locals, dir, exec, eval):
    _reader(_function)
for _row in _ROWS:
    _register(*_row)
native(weakref.ref.__call__)(_breaker("weak-reference", "a weak reference"))

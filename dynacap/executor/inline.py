"""Calls into Python functions: arguments bound to parameters, and the frame they run in."""

from __future__ import annotations

import inspect

from dynacap.executor.frame import Frame
from dynacap.executor.outside import Outside
from dynacap.guards.source import Attr
from dynacap.values.base import Const, Value
from dynacap.values.container import DictValue, TupleValue, fresh_dict
from dynacap.values.function import FunctionValue

Kwargs = dict[str, Value]


def make_frame(m: Outside, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> Frame:
    """The frame of a call, with its arguments bound as CPython binds them."""
    guard_code(m, fn)
    locals_ = bind_arguments(m, fn, args, kwargs)
    globals_, builtins = m.globals_of(fn)
    return Frame(fn, globals_, builtins, locals_)


def guard_code(m: Outside, fn: FunctionValue) -> None:
    """The function's code is what it was."""
    if fn.source is not None and not fn.guarded:
        fn.guarded = True
        code = fn.code if fn.real is None else fn.real.__code__  # perhaps the hook's for fn.code
        m.guard("IdIs", Attr(fn.source, "__code__"), code)


def bind_arguments(
    m: Outside, fn: FunctionValue, args: list[Value], kwargs: Kwargs
) -> list[Value | None]:
    """The fast locals at entry; a call that does not fit raises TypeError."""
    code = fn.code
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    named = code.co_varnames[: count + kwonly]
    locals_: list[Value | None] = [None] * code.co_nlocals
    taken = min(len(args), count)
    locals_[:taken] = args[:taken]
    if len(args) > count and not code.co_flags & inspect.CO_VARARGS:
        _misfit(m, fn, f"takes {count} positional arguments but {len(args)} were given")
    rest = _bind_keywords(m, fn, named, locals_, kwargs)
    _fill_defaults(m, fn, count, locals_)
    if kwonly:
        _fill_keyword_defaults(m, fn, named, count, locals_)
    slot = count + kwonly
    if code.co_flags & inspect.CO_VARARGS:
        locals_[slot] = TupleValue(list(args[count:]))
        slot += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        locals_[slot] = fresh_dict(m, [(Const(k), v) for k, v in rest.items()])
    elif rest:
        _misfit(m, fn, f"got an unexpected keyword argument {next(iter(rest))!r}")
    return locals_


def _bind_keywords(
    m: Outside,
    fn: FunctionValue,
    named: tuple[str, ...],
    locals_: list[Value | None],
    kwargs: Kwargs,
) -> Kwargs:
    if not kwargs:
        return kwargs
    rest: Kwargs = {}
    positional_only = fn.code.co_posonlyargcount
    for name, value in kwargs.items():
        index = named.index(name) if name in named else -1
        if index < positional_only:
            rest[name] = value
        elif locals_[index] is not None:
            _misfit(m, fn, f"got multiple values for argument {name!r}")
        else:
            locals_[index] = value
    return rest


def _fill_defaults(m: Outside, fn: FunctionValue, count: int, locals_: list[Value | None]) -> None:
    if all(value is not None for value in locals_[:count]):
        return
    defaults = positional_defaults(m, fn)
    first = count - len(defaults)
    missing = []
    for index in range(count):
        if locals_[index] is None:
            if index >= first:
                locals_[index] = m.force_item(defaults, index - first)
            else:
                missing.append(fn.code.co_varnames[index])
    if missing:
        _misfit(m, fn, _missing_text(missing, "positional"))


def positional_defaults(m: Outside, fn: FunctionValue) -> list[Value]:
    """The values of ``__defaults__``."""
    if fn.defaults is None and fn.real is not None:
        source = Attr(fn.source, "__defaults__") if fn.source is not None else None
        fn.defaults = m.wrap(fn.real.__defaults__, source)
    return fn.defaults.items if isinstance(fn.defaults, TupleValue) else []


def keyword_defaults(m: Outside, fn: FunctionValue) -> DictValue | None:
    """The mirror of ``__kwdefaults__``."""
    if fn.kwdefaults is None and fn.real is not None:
        source = Attr(fn.source, "__kwdefaults__") if fn.source is not None else None
        found = m.wrap(fn.real.__kwdefaults__, source)
        fn.kwdefaults = found if isinstance(found, DictValue) else None
    return fn.kwdefaults


def _fill_keyword_defaults(
    m: Outside, fn: FunctionValue, named: tuple[str, ...], count: int, locals_: list[Value | None]
) -> None:
    missing = []
    for index in range(count, len(named)):
        if locals_[index] is None:
            defaults = keyword_defaults(m, fn)
            found = defaults.get(m, named[index]) if defaults is not None else None
            if found is None:
                missing.append(named[index])
            locals_[index] = found
    if missing:
        _misfit(m, fn, _missing_text(missing, "keyword-only"))


def _missing_text(names: list[str], kind: str) -> str:
    shown = [repr(name) for name in names]
    if len(shown) == 1:
        text = shown[0]
    elif len(shown) == 2:
        text = f"{shown[0]} and {shown[1]}"
    else:
        text = ", ".join(shown[:-1]) + f", and {shown[-1]}"
    plural = "s" if len(shown) > 1 else ""
    return f"missing {len(shown)} required {kind} argument{plural}: {text}"


def _misfit(m: Outside, fn: FunctionValue, text: str) -> None:
    m.raise_error(TypeError, f"{fn.qualname}() {text}")

"""Calls into Python functions: arguments bound to parameters, and the frame they run in."""

from __future__ import annotations

import inspect
import types
from typing import NoReturn

from dynacap.executor.frame import Frame
from dynacap.executor.outside import Outside
from dynacap.guards.source import Attr
from dynacap.values.base import Const, Value
from dynacap.values.container import DictValue, TupleValue, fresh_dict
from dynacap.values.data_model.calls import part_of
from dynacap.values.function import FunctionValue

Kwargs = dict[str, Value]
_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


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


class _Misfit(Exception):
    """Arguments do not fit the parameters."""


def bind_arguments(
    m: Outside, fn: FunctionValue, args: list[Value], kwargs: Kwargs
) -> list[Value | None]:
    """The fast locals at entry; a call that does not fit raises TypeError."""
    try:
        return _bind(m, fn, args, kwargs)
    except _Misfit:
        _raise_misfit(m, fn, args, kwargs)


def _bind(m: Outside, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> list[Value | None]:
    code = fn.code
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    named = code.co_varnames[: count + kwonly]
    locals_: list[Value | None] = [None] * code.co_nlocals
    taken = min(len(args), count)
    locals_[:taken] = args[:taken]
    if len(args) > count and not code.co_flags & inspect.CO_VARARGS:
        raise _Misfit
    rest = _bind_keywords(fn, named, locals_, kwargs)
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
        raise _Misfit
    return locals_


def _bind_keywords(
    fn: FunctionValue, named: tuple[str, ...], locals_: list[Value | None], kwargs: Kwargs
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
            raise _Misfit
        else:
            locals_[index] = value
    return rest


def _fill_defaults(m: Outside, fn: FunctionValue, count: int, locals_: list[Value | None]) -> None:
    if all(value is not None for value in locals_[:count]):
        return
    defaults = positional_defaults(m, fn)
    first = count - len(defaults)
    for index in range(count):
        if locals_[index] is None:
            if index < first:
                raise _Misfit
            locals_[index] = m.force_item(defaults, index - first)


def positional_defaults(m: Outside, fn: FunctionValue) -> list[Value]:
    """The values of ``__defaults__``."""
    if fn.defaults is None and fn.real is not None:
        fn.defaults = part_of(m, fn.real.__defaults__, fn, "__defaults__")
    return fn.defaults.items if isinstance(fn.defaults, TupleValue) else []


def keyword_defaults(m: Outside, fn: FunctionValue) -> DictValue | None:
    """The mirror of ``__kwdefaults__``."""
    if fn.kwdefaults is None and fn.real is not None:
        found = part_of(m, fn.real.__kwdefaults__, fn, "__kwdefaults__")
        fn.kwdefaults = found if isinstance(found, DictValue) else None
    return fn.kwdefaults


def _fill_keyword_defaults(
    m: Outside, fn: FunctionValue, named: tuple[str, ...], count: int, locals_: list[Value | None]
) -> None:
    for index in range(count, len(named)):
        if locals_[index] is None:
            defaults = keyword_defaults(m, fn)
            found = defaults.get(m, named[index]) if defaults is not None else None
            if found is None:
                raise _Misfit
            locals_[index] = found


def _raise_misfit(m: Outside, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> NoReturn:
    """Raise what CPython says of such a call, by making it to a function that does nothing."""
    code, nothing = fn.code, _nothing.__code__
    shape = code.replace(
        co_code=nothing.co_code,
        co_consts=nothing.co_consts,
        co_names=(),
        co_cellvars=(),
        co_freevars=(),
        co_exceptiontable=b"",
        co_linetable=nothing.co_linetable,
        co_stacksize=nothing.co_stacksize,
        co_flags=nothing.co_flags & ~_STARS | code.co_flags & _STARS,
    )
    like = types.FunctionType(shape, {}, fn.name, (None,) * len(positional_defaults(m, fn)))
    like.__qualname__ = fn.qualname
    named = keyword_defaults(m, fn)
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    like.__kwdefaults__ = {
        name: None for name in names if named is not None and named.get(m, name) is not None
    }
    try:
        like(*[None] * len(args), **dict.fromkeys(kwargs))
    except TypeError as error:
        m.raise_real(error)
    raise AssertionError(f"the call of {fn.qualname} fits after all")


def _nothing() -> None:
    """What a misfit is tried on."""

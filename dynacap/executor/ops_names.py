"""Names of class bodies, modules and exec'd code: kept in the mapping that is their namespace."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.ops_load import global_value, load_deref, no_name
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Const, UserRaise, Value, or_none
from dynacap.values.container import DictValue, fresh_dict
from dynacap.values.data_model import get_item
from dynacap.values.data_model.items import delete_item, set_item


def _find(m: Machine, space: Value, name: str) -> Value | None:
    """What a namespace has under a name: a dict is not asked by its methods, all else is."""
    if isinstance(space, DictValue) and space.cls is dict:
        return space.get(m, name)
    return or_none(KeyError, lambda: get_item(m, space, Const(name)))


def _store(m: Machine, space: Value, name: str, value: Value) -> None:
    if isinstance(space, DictValue) and space.cls is dict:
        space.set(m, name, Const(name), value)
    else:
        set_item(m, space, Const(name), value)


@handles("LOAD_LOCALS")
def load_locals(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the namespace."""
    f.push(f.namespace)


@handles("LOAD_NAME")
def load_name(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a name of the namespace, or a global or builtin."""
    f.push(_find(m, f.namespace, i.arg) or global_value(m, f, i.arg))


@handles("LOAD_FROM_DICT_OR_GLOBALS")
def load_from_dict_or_globals(m: Machine, f: Frame, i: Instruction) -> None:
    """The same, with the namespace on the stack."""
    f.push(_find(m, f.pop(), i.arg) or global_value(m, f, i.arg))


@handles("LOAD_CLASSDEREF")
def load_classderef(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a name of the namespace, or what the cell of that name holds."""
    f.push(f.namespace)
    load_from_dict_or_deref(m, f, i)


@handles("LOAD_FROM_DICT_OR_DEREF")
def load_from_dict_or_deref(m: Machine, f: Frame, i: Instruction) -> None:
    """The same, with the namespace on the stack."""
    code = f.function.code
    found = _find(m, f.pop(), (code.co_cellvars + code.co_freevars)[i.arg])
    if found is None:
        load_deref(m, f, i)
    else:
        f.push(found)


@handles("STORE_NAME")
def store_name(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop into a name of the namespace."""
    _store(m, f.namespace, i.arg, f.pop())


@handles("DELETE_NAME")
def delete_name(m: Machine, f: Frame, i: Instruction) -> None:
    """Delete a name of the namespace."""
    try:
        delete_item(m, f.namespace, Const(i.arg))
    except UserRaise:
        no_name(m, i.arg)


@handles("SETUP_ANNOTATIONS")
def setup_annotations(m: Machine, f: Frame, i: Instruction) -> None:
    """Make ``__annotations__`` in the namespace, unless it is there."""
    if _find(m, f.namespace, "__annotations__") is None:
        _store(m, f.namespace, "__annotations__", fresh_dict(m, ()))

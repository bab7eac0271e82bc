"""Loads, stores and deletes of locals, globals, cells, names and constants."""

from __future__ import annotations

import types
from typing import NoReturn

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import DELETED, NULL, Const, Known, Lazy, Sentinel, Value
from dynacap.values.object import CellValue, ExceptionValue


@handles("RESUME")
def nothing(m: Machine, f: Frame, i: Instruction) -> None:
    """No effect on the stack."""


@handles("LOAD_CONST")
def load_const(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a constant."""
    f.stack.append(m.wrap(i.arg, None))


@handles("LOAD_FAST")
def load_fast(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a local."""
    value = f.locals[i.arg]
    if type(value) is Lazy:
        value = f.locals[i.arg] = m.force(value)
    elif value is None:
        _unbound_local(m, f.function.code.co_varnames[i.arg])
    f.stack.append(value)


def _unbound_local(m: Machine, name: str) -> NoReturn:
    m.raise_error(
        UnboundLocalError,
        f"cannot access local variable {name!r} where it is not associated with a value",
    )


@handles("STORE_FAST")
def store_fast(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop into a local; a NULL unbinds it."""
    value = f.stack.pop()
    f.locals[i.arg] = value if isinstance(value, Value) else None


@handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a local, or NULL if it has no value, and unbind it."""
    value, f.locals[i.arg] = f.locals[i.arg], None
    f.stack.append(NULL if value is None else m.force(value))


@handles("DELETE_FAST")
def delete_fast(m: Machine, f: Frame, i: Instruction) -> None:
    """Unbind a local."""
    if f.locals[i.arg] is None:
        load_fast(m, f, i)
    f.locals[i.arg] = None


@handles("LOAD_BUILD_CLASS")
def load_build_class(m: Machine, f: Frame, i: Instruction) -> None:
    """Push what makes classes; calling it breaks."""
    found = f.builtins.get(m, "__build_class__")
    if found is None:
        m.raise_error(NameError, "__build_class__ not found")
    f.stack.append(found)


@handles("LOAD_GLOBAL")
def load_global(m: Machine, f: Frame, i: Instruction) -> None:
    """Push a global or builtin."""
    f.stack.append(global_value(m, f, i.arg))


def global_value(m: Machine, f: Frame, name: str) -> Value:
    """What a name is among the globals and builtins."""
    if not (f.globals.cls is f.builtins.cls is dict):  # one may answer for what it lacks
        m.graph_break("dynamic-code", f"{name} is looked up in globals of a class of their own")
    found = f.globals.get(m, name)
    if found is None:
        found = f.builtins.get(m, name)
    if found is None:
        no_name(m, name)
    return found


def no_name(m: Machine, name: str) -> NoReturn:
    """Raise NameError for a name."""
    error = ExceptionValue(NameError, [Const(f"name {name!r} is not defined")])
    error.slots = {"name": Const(name)}
    m.throw(error)


@handles("STORE_GLOBAL")
def store_global(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop into a global."""
    f.globals.set(m, i.arg, Const(i.arg), f.pop())


@handles("DELETE_GLOBAL")
def delete_global(m: Machine, f: Frame, i: Instruction) -> None:
    """Unbind a global."""
    if not f.globals.delete(m, i.arg):
        no_name(m, i.arg)


def _cell(f: Frame, index: int) -> CellValue:
    cell = f.cells[index]
    assert isinstance(cell, CellValue)
    return cell


@handles("MAKE_CELL")
def make_cell(m: Machine, f: Frame, i: Instruction) -> None:
    """Make a cell, which takes over the local of its name."""
    content: Value | Sentinel = DELETED
    if i.arg.local is not None:
        content = f.locals[i.arg.local] or DELETED
        f.locals[i.arg.local] = None
    f.cells[i.arg.cell] = CellValue(content)


@handles("COPY_FREE_VARS")
def copy_free_vars(m: Machine, f: Frame, i: Instruction) -> None:
    """The function's closure becomes the frame's free variables."""
    first = len(f.function.code.co_cellvars)
    for offset, cell in enumerate(m.closure(f.function)):
        f.cells[first + offset] = cell


@handles("LOAD_CLOSURE")
def load_closure(m: Machine, f: Frame, i: Instruction) -> None:
    """Push what is in the place of a cell."""
    f.stack.append(f.cells[i.arg] or NULL)


@handles("LOAD_CLOSURE_AND_CLEAR")
def load_closure_and_clear(m: Machine, f: Frame, i: Instruction) -> None:
    """Push what is in the place of a cell, and take it away."""
    load_closure(m, f, i)
    f.cells[i.arg] = None


@handles("STORE_CLOSURE")
def store_closure(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop into the place of a cell."""
    value = f.stack.pop()
    f.cells[i.arg] = value if isinstance(value, Value) else None


@handles("LOAD_DEREF")
def load_deref(m: Machine, f: Frame, i: Instruction) -> None:
    """Push what a cell holds."""
    value = m.cell_content(_cell(f, i.arg))
    if value is None:
        _unbound_cell(m, f, i.arg)
    f.stack.append(value)  # type: ignore[arg-type]


def _unbound_cell(m: Machine, f: Frame, index: int) -> None:
    code = f.function.code
    if index < len(code.co_cellvars):
        _unbound_local(m, code.co_cellvars[index])
    name = code.co_freevars[index - len(code.co_cellvars)]
    m.raise_error(
        NameError,
        f"cannot access free variable {name!r} where it is not associated with a value in"
        " enclosing scope",
    )


@handles("STORE_DEREF")
def store_deref(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop into a cell."""
    m.set_cell(_cell(f, i.arg), f.pop())


@handles("DELETE_DEREF")
def delete_deref(m: Machine, f: Frame, i: Instruction) -> None:
    """Empty a cell."""
    cell = _cell(f, i.arg)
    if m.cell_content(cell) is None:
        _unbound_cell(m, f, i.arg)
    m.set_cell(cell, DELETED)


@handles("IMPORT_NAME")
def import_name(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop level and fromlist, push the module."""
    fromlist, level = f.pop(), f.pop()
    package = _package(m, f) if level.constant() else None
    f.stack.append(m.import_module(i.arg, level.constant(), fromlist.constant(), package))


def _package(m: Machine, f: Frame) -> str | None:
    found = f.globals.get(m, "__package__")
    return None if found is None else found.constant()


def _import_from(m: Machine, name: str, module: Value) -> Value | None:
    found = m.find_attribute(module, name)
    if found is None and isinstance(module, Known) and isinstance(module.value, types.ModuleType):
        m.graph_break("import", f"cannot import {name!r} from {module.value.__name__!r}")
    return found


operation("IMPORT_FROM", _import_from)

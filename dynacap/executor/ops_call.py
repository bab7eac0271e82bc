"""Calls, and the making of functions."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.inline import Kwargs
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import NULL, Known, Value
from dynacap.values.container import DictValue, TupleValue
from dynacap.values.data_model import unpack
from dynacap.values.data_model.attributes import make_super
from dynacap.values.data_model.calls import call_resolved, resolve_call
from dynacap.values.function import FunctionValue
from dynacap.values.object import CellValue, ObjectValue
from dynacap.values.torch_library.modules import resolve_module_call


@handles("CALL")
def call(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop arguments, callable and self or NULL; push the result, perhaps after a frame has run."""
    argc, names = i.arg
    args = f.pop_many(argc)
    kwargs: Kwargs = {}
    if names:
        split = argc - len(names)
        kwargs = dict(zip(names, args[split:], strict=True))
        args = args[:split]
    second, first = f.stack.pop(), f.stack.pop()
    if first is NULL:
        fn = second
    elif second is NULL:
        fn = first
    else:
        fn = first
        args.insert(0, second)  # type: ignore[arg-type]
    _invoke(m, f, fn, args, kwargs)  # type: ignore[arg-type]


@handles("CALL_FUNCTION_EX")
def call_function_ex(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop keyword mapping (if any), positional iterable, callable, NULL; push the result."""
    kwargs: Kwargs = {}
    if i.arg:
        for key, value in m.mapping_items(f.pop(), "call"):
            name = key.constant()
            if type(name) is not str:
                m.raise_error(TypeError, "keywords must be strings")
            kwargs[name] = value
    args = unpack(m, f.pop())
    fn = f.pop()
    if f.stack and f.stack[-1] is NULL:
        f.stack.pop()
    _invoke(m, f, fn, args, kwargs)


def _invoke(m: Machine, f: Frame, fn: Value, args: list[Value], kwargs: Kwargs) -> None:
    """Call; a Python function gets a frame on the chain, anything else is done at once."""
    if type(fn) is Known and fn.value is super and not args:
        f.push(_implicit_super(m, f))
        return
    if type(fn) is ObjectValue:
        fn = resolve_module_call(m, fn) or fn
    fn, args = resolve_call(m, fn, args)
    if isinstance(fn, FunctionValue):
        result = m.enter(fn, args, kwargs)
        if result is None:
            return
    else:
        result = call_resolved(m, fn, args, kwargs)
    f.push(result)


def _implicit_super(m: Machine, f: Frame) -> Value:
    """``super()``: the class from the ``__class__`` cell, the object from the first argument."""
    code = f.function.code
    if "__class__" not in code.co_freevars or not code.co_argcount:
        m.raise_error(RuntimeError, "super(): no arguments")
    cell = f.cells[len(code.co_cellvars) + code.co_freevars.index("__class__")]
    assert cell is not None
    cls = m.cell_content(cell)
    name = code.co_varnames[0]
    obj = f.locals[0]
    if obj is None and name in code.co_cellvars:
        own = f.cells[code.co_cellvars.index(name)]
        obj = m.cell_content(own) if own is not None else None
    if cls is None or obj is None:
        return m.graph_break("super", "super() without its class or object")
    obj = m.force(obj)
    return make_super(cls, obj)


@handles("MAKE_FUNCTION")
def make_function(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop code and what the flags say (closure, annotations, defaults); push a function."""
    made = FunctionValue(f.pop().constant())
    made.globals_of = f.function.globals_of
    made.cells = []
    if i.arg & 8:
        cells = f.pop()
        assert isinstance(cells, TupleValue)
        made.cells = [cell for cell in cells.items if isinstance(cell, CellValue)]
    if i.arg & 4:
        made.annotations = f.pop()
    if i.arg & 2:
        kwdefaults = f.pop()
        made.kwdefaults = kwdefaults if isinstance(kwdefaults, DictValue) else None
    if i.arg & 1:
        made.defaults = f.pop()
    f.push(made)

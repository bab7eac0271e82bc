"""Calls, and the making of functions."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.inline import Kwargs
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import NULL, Known, Value, constant_or
from dynacap.values.container import DictValue, TupleValue, fresh_dict
from dynacap.values.data_model import as_tuple, get_attribute
from dynacap.values.data_model.attributes import make_super
from dynacap.values.data_model.calls import call_resolved, resolve_call
from dynacap.values.data_model.items import is_iterable
from dynacap.values.function import FunctionValue
from dynacap.values.library.dicts import store
from dynacap.values.object import CellValue, ObjectValue
from dynacap.values.torch_library.modules import resolve_module_call


@handles("CALL")
def call(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop arguments, callable and self or NULL; push the result, perhaps after a frame has run."""
    _call(m, f, *i.arg)


@handles("CALL_KW")
def call_kw(m: Machine, f: Frame, i: Instruction) -> None:
    """The same; the names of keywords lie on top."""
    _call(m, f, i.arg, f.pop().constant())


def _call(m: Machine, f: Frame, argc: int, names: tuple[str, ...]) -> None:
    args = f.pop_many(argc)
    kwargs: Kwargs = {}
    if names:
        split = argc - len(names)
        kwargs = dict(zip(names, args[split:], strict=True))
        args = args[:split]
    fn, *first = _callee(f)
    _invoke(m, f, fn, [*first, *args], kwargs)


def _callee(f: Frame) -> list[Value]:
    """Pop what is called: beside a NULL, over it or under; or a function and its first argument."""
    return [item for item in f.pop_many(2) if item is not NULL]


@handles("CALL_FUNCTION_EX")
def call_function_ex(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop keyword mapping (if any), positional iterable, callable, NULL; push the result."""
    kwargs: Kwargs = {}
    mapping = f.stack.pop() if i.arg else NULL
    if isinstance(mapping, Value):
        for key, value in m.mapping_items(mapping):
            name = key.constant()
            if type(name) is not str:
                m.raise_error(TypeError, "keywords must be strings")
            kwargs[name] = value
    spread = f.pop()
    (fn,) = _callee(f)
    if not is_iterable(m, spread):
        problem = f"argument after * must be an iterable, not {spread.title}"
        m.raise_error(TypeError, f"{_called(m, fn)} {problem}")
    args = as_tuple(m, spread)
    _invoke(m, f, fn, args, kwargs)


def _merge(m: Machine, depth: int, *seen: Value) -> None:
    """Pop a mapping, add it to the keywords below; the callable lies deeper still, by a NULL."""
    fn, made = next(item for item in seen[:2] if item is not NULL), seen[-depth - 1]
    assert isinstance(made, DictValue)
    for key, value in m.mapping_items(seen[-1], lambda: _called(m, fn)):
        if made.get(m, m.key_of(key)) is not None:
            text = f"got multiple values for keyword argument {key.constant()!r}"
            m.raise_error(TypeError, f"{_called(m, fn)} {text}")
        store(m, made, key, value)


operation("DICT_MERGE", _merge)


def _called(m: Machine, fn: Value) -> str:
    """How messages name what is called."""
    name, module = (m.find_attribute(fn, part) for part in ("__qualname__", "__module__"))
    if name is None:
        return fn.describe()
    home = constant_or(module, None) if module is not None else None
    return (
        f"{home}.{name.constant()}()" if home not in (None, "builtins") else f"{name.constant()}()"
    )


def _invoke(m: Machine, f: Frame, fn: Value, args: list[Value], kwargs: Kwargs) -> None:
    """Call; a Python function gets a frame on the chain, anything else is done at once."""
    if type(fn) is Known and fn.value is super and not args and not kwargs:
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
        missing = "__class__ cell not found" if code.co_argcount else "no arguments"
        m.raise_error(RuntimeError, f"super(): {missing}")
    cell = f.cells[len(code.co_cellvars) + code.co_freevars.index("__class__")]
    assert isinstance(cell, CellValue)
    cls = m.cell_content(cell)
    name = code.co_varnames[0]
    obj = f.locals[0]
    if obj is None and name in code.co_cellvars:
        own = f.cells[code.co_cellvars.index(name)]
        obj = m.cell_content(own) if isinstance(own, CellValue) else None
    if cls is None or obj is None:
        return m.graph_break("super", "super() without its class or object")
    obj = m.force(obj)
    return make_super(m, cls, obj)


@handles("LOAD_SUPER_ATTR")
def load_super_attr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop object, class and what the name ``super`` means; push the attribute of its result."""
    fn, cls, obj = f.pop_many(3)
    direct = type(fn) is Known and fn.value is super and not i.arg.explicit
    args = [cls, obj] if i.arg.explicit else []
    made = make_super(m, cls, obj) if direct else m.call(fn, args)
    f.push(get_attribute(m, made, i.arg.name))


@handles("MAKE_FUNCTION")
def make_function(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop code and what the flags say (closure, annotations, defaults); push a function."""
    made = FunctionValue(f.pop().constant())
    made.globals_of = f.function.globals_of
    made.cells = []
    for flag in (8, 4, 2, 1):
        if (i.arg or 0) & flag:
            _set_part(m, made, flag, f.pop())
    f.push(made)


@handles("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop a new function and a part of it by flag; push the function that has it."""
    made, part = f.pop(), f.pop()
    assert isinstance(made, FunctionValue)
    _set_part(m, made, i.arg, part)
    f.push(made)


def _set_part(m: Machine, made: FunctionValue, flag: int, part: Value) -> None:
    if flag == 8 and isinstance(part, TupleValue):
        made.cells = [cell for cell in part.items if isinstance(cell, CellValue)]
    elif flag == 16:
        made.fields["annotate"] = part
    elif flag == 4 and isinstance(part, TupleValue):
        pairs = zip(part.items[::2], part.items[1::2], strict=True)
        made.annotations = fresh_dict(m, pairs)
    elif flag == 2:
        made.kwdefaults = part if isinstance(part, DictValue) else None
    elif flag == 1:
        made.defaults = part

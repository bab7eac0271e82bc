"""Operators, comparisons, attributes and items: all go through the data model."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import OpHandler, handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Const
from dynacap.values.container import SliceValue
from dynacap.values.data_model import (
    binary_op,
    compare,
    contains,
    delete_attribute,
    delete_item,
    get_attribute,
    get_item,
    is_same,
    set_attribute,
    set_item,
    truth,
    unary_op,
)


def _unary(symbol: str) -> OpHandler:
    def handler(m: Machine, f: Frame, i: Instruction) -> None:
        """Replace the top by the operator's result."""
        f.stack.append(unary_op(m, symbol, f.pop()))

    return handler


handles("UNARY_NEGATIVE")(_unary("-"))
handles("UNARY_POSITIVE")(_unary("+"))
handles("UNARY_INVERT")(_unary("~"))


@handles("UNARY_NOT")
def unary_not(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace the top by its negated truth."""
    f.stack.append(Const(not truth(m, f.pop())))


@handles("BINARY_OP")
def binary(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop two, push the result."""
    right, left = f.pop(), f.pop()
    f.stack.append(binary_op(m, i.arg, left, right))


@handles("COMPARE_OP")
def compare_op(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop two, push the result of the comparison."""
    right, left = f.pop(), f.pop()
    f.stack.append(compare(m, i.arg, left, right))


@handles("IS_OP")
def is_op(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop two, push whether they are the same object."""
    right, left = f.pop(), f.pop()
    f.stack.append(Const(is_same(m, left, right) is not i.arg))


@handles("CONTAINS_OP")
def contains_op(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop container and item, push whether it is in."""
    container, item = f.pop(), f.pop()
    f.stack.append(Const(contains(m, container, item) is not i.arg))


@handles("BINARY_SUBSCR")
def binary_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop key and object, push the item."""
    key, obj = f.pop(), f.pop()
    f.stack.append(get_item(m, obj, key))


@handles("STORE_SUBSCR")
def store_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop key, object and value; store the item."""
    key, obj, value = f.pop(), f.pop(), f.pop()
    set_item(m, obj, key, value)


@handles("BINARY_SLICE")
def binary_slice(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop stop, start and object; push the slice of it."""
    obj, start, stop = f.pop_many(3)
    f.push(get_item(m, obj, SliceValue((start, stop, Const(None)))))


@handles("STORE_SLICE")
def store_slice(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop stop, start, object and value; store the slice of it."""
    value, obj, start, stop = f.pop_many(4)
    set_item(m, obj, SliceValue((start, stop, Const(None))), value)


@handles("DELETE_SUBSCR")
def delete_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop key and object; delete the item."""
    key, obj = f.pop(), f.pop()
    delete_item(m, obj, key)


@handles("BUILD_SLICE")
def build_slice(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop two or three bounds, push a slice."""
    parts = f.pop_many(i.arg)
    start, stop = parts[0], parts[1]
    step = parts[2] if i.arg == 3 else Const(None)
    f.stack.append(SliceValue((start, stop, step)))


@handles("LOAD_ATTR")
def load_attr(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace the top by its attribute."""
    f.stack.append(get_attribute(m, f.pop(), i.arg))


@handles("STORE_ATTR")
def store_attr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop object and value; set the attribute."""
    obj, value = f.pop(), f.pop()
    set_attribute(m, obj, i.arg, value)


@handles("DELETE_ATTR")
def delete_attr(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop an object; delete the attribute."""
    delete_attribute(m, f.pop(), i.arg)

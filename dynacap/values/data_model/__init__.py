"""Python's data model, written once: attributes, calls, operators, items and iteration.

Each function follows the language reference over the *real* types of the values: it looks special
methods up through the MRO and calls what it finds, a Python function (inlined) or a C function
(by :mod:`dynacap.values.natives`, or for real where it is pure and the operands are constants).
"""

from dynacap.values.data_model.attributes import (
    delete_attribute,
    find_attribute,
    get_attribute,
    instance_dict,
    set_attribute,
)
from dynacap.values.data_model.calls import call_special, call_value, find_special
from dynacap.values.data_model.items import (
    advance,
    contains,
    delete_item,
    get_item,
    iterate,
    length,
    set_item,
    unpack,
)
from dynacap.values.data_model.operators import binary_op, compare, is_same, truth, unary_op

__all__ = [
    "advance",
    "binary_op",
    "call_special",
    "call_value",
    "compare",
    "contains",
    "delete_attribute",
    "delete_item",
    "find_attribute",
    "find_special",
    "get_attribute",
    "get_item",
    "instance_dict",
    "is_same",
    "iterate",
    "length",
    "set_attribute",
    "set_item",
    "truth",
    "unary_op",
    "unpack",
]

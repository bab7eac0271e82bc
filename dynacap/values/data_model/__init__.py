"""Python's data model, written once: attributes, calls, operators, items and iteration.

Each function follows the language reference over the *real* types of the values: it looks special
methods up through the MRO and calls what it finds, a Python function (inlined) or a C function
(by :mod:`dynacap.values.natives`, or for real where it is pure and the operands are constants).
"""

from dynacap.values.data_model.attribute_writes import (
    delete_attribute as delete_attribute,
    set_attribute as set_attribute,
)
from dynacap.values.data_model.attributes import (
    find_attribute as find_attribute,
    get_attribute as get_attribute,
    instance_dict as instance_dict,
)
from dynacap.values.data_model.calls import call_special as call_special
from dynacap.values.data_model.items import (
    advance as advance,
    as_sequence as as_sequence,
    as_tuple as as_tuple,
    contains as contains,
    delete_item as delete_item,
    drain as drain,
    get_item as get_item,
    iterate as iterate,
    length as length,
    set_item as set_item,
    unpack as unpack,
    walk as walk,
)
from dynacap.values.data_model.operators import (
    binary_op as binary_op,
    compare as compare,
    is_same as is_same,
    truth as truth,
    unary_op as unary_op,
)

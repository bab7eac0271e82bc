"""Running the body of a class, of a module, or of what ``exec`` is given.

Such code keeps its names in a mapping.  A frame of it is offered as ``callable(function,
namespace)``; Python itself has no call that runs it in a given mapping and tells its result.
"""

import ctypes
import functools
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_OBJECT, _POINTER, _INT = ctypes.py_object, ctypes.c_void_p, ctypes.c_int


def is_body(code: CodeType) -> bool:
    """Whether code keeps its names in a mapping."""
    return not code.co_flags & inspect.CO_OPTIMIZED


class _Argument:
    """The one argument, as the array that C wants."""

    @classmethod
    def from_param(cls, argument: Any) -> Any:
        return (_OBJECT * 1)(argument)


# The parameters of PyEval_EvalCodeEx: type, name, and what is passed unless said otherwise.
_PARAMETERS: tuple[tuple[Any, ...], ...] = (
    (_OBJECT, "code"),
    (_OBJECT, "globals"),
    (_OBJECT, "locals"),
    (_Argument, "args"),
    (_INT, "argcount", 1),
    (_POINTER, "kws", None),
    (_INT, "kwcount", 0),
    (_POINTER, "defs", None),
    (_INT, "defcount", 0),
    (_POINTER, "kwdefs", None),
    (_OBJECT, "closure"),
)
_evaluate = ctypes.PYFUNCTYPE(_OBJECT, *(kind for kind, *_ in _PARAMETERS))(
    ("PyEval_EvalCodeEx", ctypes.pythonapi), tuple((1, *named) for _, *named in _PARAMETERS)
)


def body(function: FunctionType, code: CodeType, namespace: object) -> Callable[[Any], Any]:
    """What runs code, in the name of a function, in a namespace, and gives its result.

    It is called with the code's one argument, or with None where there is no parameter, and puts no
    Python frame between.
    """
    return functools.partial(
        _evaluate, code, function.__globals__, namespace,
        argcount=code.co_argcount, closure=function.__closure__ or (),
    )  # fmt: skip

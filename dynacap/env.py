"""Facts about this interpreter and machine, as booleans named for the behaviour.

Versions are compared in ``opcodes/versions`` and ``hook/cpython.h`` only; a fact that other code
needs is found out here by looking for the thing itself.
"""

import ctypes
import sys
import sysconfig
from collections.abc import Iterator

IS_CPYTHON = sys.implementation.name == "cpython"

HAS_GIL = (
    not sysconfig.get_config_var("Py_GIL_DISABLED")
    or getattr(sys, "_is_gil_enabled", lambda: True)()
)

HAS_MONITORING = hasattr(sys, "monitoring")

HAS_DICT_WATCHERS = IS_CPYTHON and hasattr(ctypes.pythonapi, "PyDict_Watch")

IS_LINUX = sys.platform.startswith("linux")


class _Asked:
    """Empty; notes whether it is asked for its length."""

    def __iter__(self) -> Iterator[None]:
        return iter(())

    def __length_hint__(self) -> int:
        self.asked = True
        return 0


tuple(_asked := _Asked())
TUPLES_ASK_LENGTHS = hasattr(_asked, "asked")

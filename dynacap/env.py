"""Facts about this interpreter and machine, as booleans named for the behaviour.

Versions are compared in ``opcodes/versions`` and ``hook/cpython.h`` only; a fact that other code
needs is found out here by looking for the thing itself.
"""

import ctypes
import sys
import sysconfig

IS_CPYTHON = sys.implementation.name == "cpython"

HAS_GIL = (
    not sysconfig.get_config_var("Py_GIL_DISABLED")
    or getattr(sys, "_is_gil_enabled", lambda: True)()
)

HAS_MONITORING = hasattr(sys, "monitoring")

HAS_DICT_WATCHERS = IS_CPYTHON and hasattr(ctypes.pythonapi, "PyDict_Watch")

IS_LINUX = sys.platform.startswith("linux")

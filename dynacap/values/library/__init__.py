"""Handlers for functions and methods written in C; importing this package registers them all.

What is left without a handler of its own may be pure, which comes last.
"""

import importlib
import pkgutil

_names = [module.name for module in pkgutil.iter_modules(__path__)]
for _name in sorted(_names, key=lambda name: (name == "pure", name)):
    importlib.import_module(f"{__name__}.{_name}")

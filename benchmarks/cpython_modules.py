"""The modules of CPython's `test` package that `cpython_suite.py` runs, and tests known to differ.

A module that goes by another name on another Python is written with a bar between the names.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

NAMES = """
    test_generators test_contextlib test_exceptions test_raise test_with test_class test_descr
    test_dict test_list test_tuple test_set test_deque test_ordered_dict test_defaultdict
    test_itertools test_functools test_operator test_scope test_call test_keywordonlyarg
    test_positional_only_arg test_extcall test_unpack test_unpack_ex test_named_expressions
    test_patma test_listcomps test_setcomps test_dictcomps test_genexps test_iter test_enumerate
    test_range test_slice test_int test_float test_complex test_bool test_str|test_unicode
    test_fstring test_format test_math test_enum test_dataclasses test_collections test_copy
    test_weakref test_property test_super test_decorators test_dynamic test_global test_grammar
    test_augassign test_binop test_compare test_richcmp test_contains test_hash test_bisect
    test_heapq test_reprlib test_string test_types test_typing test_coroutines test_asyncgen
    test_except_star test_exception_group test_sys_settrace
"""
EXCEPTIONS = Path(__file__).with_name("cpython_exceptions.txt")


def modules() -> list[str]:
    """The names that this Python's `test` package has."""
    return [
        next(name for name in names.split("|") if importlib.util.find_spec(f"test.{name}"))
        for names in NAMES.split()
    ]


@dataclass(frozen=True)
class Known:
    """A test that no tool can keep as it is, under these hooks and on these Pythons; all those of a
    module or class where a star ends its name.
    """

    test: str
    hooks: str
    versions: str
    reason: str

    def covers(self, test: str, hook: str) -> bool:
        """Whether this is about that test, here."""
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        fits = hook in self.hooks.split(",") or self.hooks == "any"
        return (
            fits
            and (self.test == test or (self.test[-1] == "*" and test.startswith(self.test[:-1])))
            and (self.versions in ("any", version) or version in self.versions.split(","))
        )


def known() -> list[Known]:
    """The rows of the file of exceptions: test | hooks | Pythons | reason."""
    lines = [line.partition("#")[0].strip() for line in EXCEPTIONS.read_text().splitlines()]
    return [Known(*(part.strip() for part in line.split("|"))) for line in lines if line]


def environment(hook: str) -> dict[str, str]:
    """What the processes of both sides run under."""
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "DYNACAP_HOOK": hook}
    return {**os.environ, **fixed}

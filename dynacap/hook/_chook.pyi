# The C extension; module.c is its glue, each type stands in the C file that is named for it.
from collections.abc import Callable
from types import CodeType, FunctionType, TracebackType
from typing import Any

from dynacap.hook.protocol import Callback, Finish, FrameCallable

class CompiledFunction:
    """compiled_function.c; the twin is dynacap/hook/compiled_function.py."""

    table: FrameCallable
    finish: Finish | None
    def __init__(
        self, function: FunctionType, table: FrameCallable, finish: Finish | None = None
    ) -> None: ...
    @property
    def function(self) -> FunctionType: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...
    def __reduce__(self) -> str: ...
    def __getattr__(self, name: str) -> Any: ...

class ModuleCall:
    """module_call.c"""

    def __init__(self, function: Callable[..., Any], slot: str) -> None: ...
    @property
    def function(self) -> FunctionType: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

class Active:
    """active.c"""

    def __init__(self, callback: Callback | None) -> None: ...
    def __enter__(self) -> Active: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Path:
    """trampoline.c"""

    def __init__(
        self,
        step: FunctionType,
        waiting: int,
        head: int,
        rest: tuple[Any, ...],
        sites: tuple[Any, ...],
        ends: tuple[bool, ...],
    ) -> None: ...

class Trampoline:
    """trampoline.c; the twin is dynacap/hook/trampoline.py."""

    def __init__(self, driver: Any, paths: dict[Any, Any], weakly: bool = False) -> None: ...
    def __call__(self, suspend: Any, /) -> Any: ...

# activation.c
def enter(callback: Callback | None, frames: int = 0, /) -> int: ...
def exit(token: int, /) -> None: ...
def is_active() -> bool: ...
def after_fork() -> None: ...

# code_cache.c
def mark_never(code: CodeType, /) -> None: ...
def is_marked(code: CodeType, /) -> bool: ...
def clear_marks() -> None: ...
def mark_hidden(code: CodeType, /) -> None: ...

# eval_hook.c
def is_installed() -> bool: ...
def configure(never: object, reporter: object, /) -> None: ...

# compiled_function.c
def set_suspend_type(suspend_type: type | None, /) -> None: ...

# The frame of a generator that is not running, and handles no exception.
def read_generator(
    generator: object, missing: object, /
) -> tuple[CodeType, FunctionType, int, int, tuple[Any, ...]] | None: ...
def write_generator(
    generator: Any,
    lasti: int,
    delegates: bool,
    changes: dict[int, Any],
    stack: tuple[Any, ...],
    missing: object,
    /,
) -> Any: ...

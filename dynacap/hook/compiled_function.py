"""A callable that binds its arguments and calls a table; the twin of compiled_function.c."""

import functools
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynacap.hook.activation import Activation
from dynacap.hook.protocol import Finish, FrameCallable
from dynacap.hook.signature import gatherer

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")
_READ_ONLY = ("__globals__", "__closure__")
_THROUGH = ("__code__", "__defaults__", "__kwdefaults__", *_READ_ONLY)
_FALLBACK = frozenset({"__annotations__", "__annotate__", "__type_params__"})

_suspend_type: type | None = None


def set_suspend_type(suspend_type: type | None) -> None:
    """The class of results that go through ``finish``."""
    global _suspend_type
    _suspend_type = suspend_type


def _through(name: str) -> property:
    """A property that is the function's attribute of that name."""

    def get(self: "CompiledFunction") -> Any:
        return getattr(self.function, name)

    def put(self: "CompiledFunction", value: Any) -> None:
        setattr(self.function, name, value)

    def remove(self: "CompiledFunction") -> None:
        delattr(self.function, name)

    return property(get) if name in _READ_ONLY else property(get, put, remove)


class CompiledFunction:
    """A function's calls, bound to one flat vector for a table of compiled entries."""

    # The instance's dict is for what the function has and for what users add.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_activation",
        "_function",
        "_gather",
        "_gathered_code",
        "_original_code",
        "finish",
        "table",
    )

    def __init__(
        self,
        function: FunctionType,
        table: FrameCallable,
        finish: Finish | None,
        activation: Activation,
        original_code: Callable[[FunctionType], CodeType],
    ) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"a Python function is needed, not a {type(function).__name__}")
        self._function = function
        self.table = table
        self.finish = finish
        self._activation = activation
        self._original_code = original_code
        self._gathered_code: CodeType | None = None
        self._gather: FunctionType = function
        functools.update_wrapper(self, function, assigned=_COPIED)

    @property
    def function(self) -> FunctionType:
        """The function whose calls these are."""
        return self._function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the table; a call that does not fit raises what the function raises."""
        try:
            bound = self._bind(args, kwargs)
        except TypeError:
            bound = None
        if bound is None:
            return self._function(*args, **kwargs)
        return self.run(self._function, *bound)

    def run(self, /, *flat: Any) -> Any:
        """Call the table with a flat vector, the hook inactive, and finish what it suspends."""
        finish = self.finish
        paused = self._activation.pause()
        try:
            result = self.table(*flat)
            if finish is not None and type(result) is _suspend_type:
                result = finish(result)
                if type(result) is _suspend_type:
                    run, done = result.values
                    try:
                        result = run()
                    finally:
                        done()
            return result
        finally:
            self._activation.resume(paused)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        function, gather = self._function, self._gather
        if function.__code__ is not self._gathered_code:
            gather = self._gather = gatherer(self._original_code(function))
            self._gathered_code = function.__code__
        gather.__defaults__ = function.__defaults__
        gather.__kwdefaults__ = function.__kwdefaults__
        bound: tuple[Any, ...] = gather(*args, **kwargs)
        return bound

    def __getattr__(self, name: str) -> Any:
        # As properties they would be taken for annotations of this class itself.
        if name in _FALLBACK:
            return getattr(self._function, name)
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A method of an instance, as functions bind."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        """By name, as functions are pickled and copied."""
        name: str = self.__dict__["__qualname__"]
        return name

    def __repr__(self) -> str:
        return f"<dynacap compiled function {self._function.__qualname__} at {id(self):#x}>"


for _name in _THROUGH:
    setattr(CompiledFunction, _name, _through(_name))

"""What a value may ask of the executor, as a Protocol: it keeps values from importing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:  # only here, so that every value may import the protocol
    from dynacap.guards.guard_set import GuardSet
    from dynacap.guards.kinds import Guard
    from dynacap.guards.source import Source
    from dynacap.values.base import Value
    from dynacap.values.container import DictValue, Key
    from dynacap.values.function import FunctionValue, GeneratorValue
    from dynacap.values.object import CellValue
    from dynacap.values.tensor.family import TensorFamily


class Tracer(Protocol):
    """The executor, as seen from the values and from the handlers of library functions."""

    tensors: TensorFamily
    guards: GuardSet
    until: tuple[Guard, ...]  # a break is one only while these hold
    mirrors: dict[int, Value]  # id of a real object -> its one value
    handled: Value | None  # the exception that is being handled now
    effects: int  # how many changes there were, of the same value too
    whole_steps: int  # those of the chain before the original instruction that runs now

    # -- outside objects -------------------------------------------------------------------------
    def wrap(self, real: Any, source: Source | None) -> Value:
        """The value of an outside object; the same one each time for the same object."""

    def force(self, value: Value) -> Value:
        """A lazy value looked at for the first time becomes what it stands for."""

    def force_item(self, items: list[Value], index: int) -> Value:
        """``items[index]``, forced in place."""

    # (The data model, for what it is made of.)
    def get_item(self, obj: Value, key: Value) -> Value:
        """``obj[key]``."""

    def call_special(self, obj: Value, name: str, args: list[Value]) -> Value:
        """``type(obj).name(obj, *args)``, as the interpreter calls special methods."""

    def find_attribute(self, obj: Value, name: str) -> Value | None:
        """``getattr(obj, name)``, or None where Python would raise its own AttributeError."""

    def unpack(self, obj: Value) -> list[Value]:
        """``[*obj]``: every element, by iterating."""

    def guard(self, kind: Any, source: Source, *expected: Any) -> None:
        """Add a guard of that kind on a source, blamed on the user's current line."""

    def read_outside_dict(self, mirror: DictValue, key: Key) -> Value | None:
        """What an outside dict holds under a key, under a guard."""

    def outside_keys(self, mirror: DictValue) -> list[Key]:
        """The keys of an outside dict, guarded as a whole."""

    def outside_key_value(self, mirror: DictValue, key: Key) -> Value:
        """The value of a key object of an outside dict."""

    def lookup(self, cls: type, name: str) -> Any:
        """The raw attribute of a class found through its MRO, or MISSING; guarded."""

    def class_attribute(self, cls: type, name: str) -> Value:
        """The raw attribute as a value with a source; it must be there."""

    def class_value(self, cls: type) -> Value:
        """The class itself as a value."""

    def write_class(self, owner: Value, name: str, value: Value) -> None:
        """Set an attribute of a class to plain data; replayed like other effects."""

    def key_of(self, value: Value, container: type = dict) -> Key:
        """What stands for a value as a key of a dict or set."""

    def meets(self, key: Any, address: bool = False) -> None:
        """A key is from outside, or the address of an object: large numbers may be addresses."""

    def lacks(self, key: Key) -> None:
        """Note that a key was looked for in a dict, and not found: none there may become it."""

    # -- effects ---------------------------------------------------------------------------------
    @property
    def touched(self) -> list[Value]:
        """What changed so far, in the order of first changes."""

    def touch(self, value: Value) -> None:
        """Note that a mutable value changed, so that the change is replayed outside."""

    def let_go(self, value: Value) -> None:
        """Something lets go of an object; breaks if its death can be seen."""

    # -- control ---------------------------------------------------------------------------------
    def call(self, fn: Value, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        """Call a value now, inlining Python functions; may raise UserRaise or GraphBreak."""

    def inline(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Run a Python function symbolically to its end."""

    def resume_generator(
        self, gen: GeneratorValue, sent: Value | None, thrown: Value | None
    ) -> Value:
        """Go on with a generator until its next yield; UserRaise(StopIteration) at its end."""

    def raise_error(self, cls: type[BaseException], *args: Any) -> NoReturn:
        """Raise a built-in exception in the traced program."""

    def raise_real(self, error: BaseException, about: Value | None = None) -> NoReturn:
        """Raise in the traced program what folding an operation raised for real; where that names
        an object, it is ``about`` this one."""

    def location(self) -> tuple[str, int, str]:
        """File, line and function of the user's instruction that runs now."""

    def inside_try(self) -> bool:
        """Whether an exception raised now might meet a handler of the program's."""

    def throw(self, exc: Value) -> NoReturn:
        """Raise an exception in the traced program, with its context."""

    def graph_break(
        self, reason: str, detail: str = "", hint: str = "", before: int = -1
    ) -> NoReturn:
        """Stop capture before the current instruction of the chain, or before that step of it."""

    def running(self) -> FunctionValue:
        """The function whose frame is innermost."""

    def globals_of(self, function: FunctionValue) -> tuple[DictValue, DictValue]:
        """The mirrors of the globals and builtins that a function reads."""

    def closure(self, function: FunctionValue) -> list[CellValue]:
        """The cells of a function's free variables."""

    def cell_content(self, cell: CellValue) -> Value | None:
        """What a cell holds, or None if it is empty."""

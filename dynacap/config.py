"""The options, one dataclass; the only module that reads environment variables.

``from dynacap.config import config`` gives the one instance.  Each option can be set as an
attribute, for a while through :meth:`Config.patch`, or from outside by an environment variable
named ``DYNACAP_`` and the option's name in capitals (``DYNACAP_LOGS=graph,breaks``).  A name or a
value that is not understood raises at once and says what would have been.

Options are shared by all threads; what belongs to a single model is an argument of
``dynacap.compile``.  A description that starts with "Reserved:" is of an option which is accepted,
so that code written for ``torch.compile`` runs, and which changes nothing yet.
"""

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

LOG_CHANNELS = (
    *("graph", "guards", "breaks", "recompiles", "bytecode", "code", "hook"),
    *("aten", "loops", "schedule", "c"),  # the stages of the native backend
)
BUILD_VARIABLES = frozenset({"DYNACAP_EXTENSIONS"})  # read by setup.py, not here

_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


@dataclass(frozen=True)
class Kind:
    """What an option accepts: in words, as a check of Python values, and as text from outside.

    ``accept`` gives the value to keep, or raises ValueError or TypeError.
    """

    words: str
    accept: Callable[[object], object]
    parse: Callable[[str], object]


def _accept_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word in _FALSE_WORDS:
        return False
    raise ValueError


def _accept_limit(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if value < 1:
        raise ValueError
    return value


def _accept_channels(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable):
        raise TypeError
    value = list(value)
    if not all(isinstance(name, str) for name in value):
        raise TypeError
    names = dict.fromkeys(name.strip() for name in value if name.strip())
    if "all" in names:
        return LOG_CHANNELS
    if not names.keys() <= set(LOG_CHANNELS):
        raise ValueError
    return tuple(names)


def _accept_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _accept_verify(value: object) -> object:
    """The text or the number as it is, if it means something."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError
    if not re.fullmatch(r"heal(:\d+)?|\d+", str(value)):
        raise ValueError
    return value if str(value).startswith("heal") else int(value)


def _choice(*names: str) -> Kind:
    def accept(value: object) -> object:
        if value not in names:
            raise ValueError
        return value

    return Kind("one of " + ", ".join(map(repr, names)), accept, str.strip)


BOOL = Kind("True or False", _accept_bool, _parse_bool)
LIMIT = Kind("an int of at least 1", _accept_limit, int)
CHANNELS = Kind(
    "names of channels, as a tuple or parted by commas: " + ", ".join((*LOG_CHANNELS, "all")),
    _accept_channels,
    str.strip,
)

VERIFY = Kind("a number of calls, 'heal', or 'heal:' and a number", _accept_verify, str.strip)
FOLDER = Kind("the path of a folder, or '' for the system's own", _accept_text, str)
TEXT = Kind("a string", _accept_text, str)


def _option(default: object, kind: Kind, doc: str) -> Any:
    return field(default=default, metadata={"kind": kind, "doc": doc})


@dataclass(repr=False, eq=False)
class Config:
    """Every option, its default and one line on what it does."""

    recompile_limit: int = _option(
        8, LIMIT, "Entries that one compile call may hold for one piece of code."
    )
    accumulated_recompile_limit: int = _option(
        256, LIMIT, "Captures of one piece of code in all, those whose entries are gone included."
    )
    error_on_recompile: bool = _option(
        False, BOOL, "Raise RecompileError, with the guard that failed, instead of recompiling."
    )
    fail_on_recompile_limit_hit: bool = _option(
        False, BOOL, "Raise FailOnRecompileLimitHit at a limit instead of running eagerly."
    )
    suppress_errors: bool = _option(
        False, BOOL, "Run eagerly instead of raising when capture or a backend fails."
    )
    suppress_backend_errors: bool = _option(
        False, BOOL, "Run a graph eagerly instead of raising when its backend fails."
    )
    raise_internal_errors: bool = _option(
        False, BOOL, "Raise dynacap's own errors instead of logging them and running eagerly."
    )
    automatic_dynamic_shapes: bool = _option(
        True, BOOL, "Make a size or a number symbolic when a second value of it is seen."
    )
    assume_static_by_default: bool = _option(
        True, BOOL, "Take sizes as constant until told or shown otherwise."
    )
    capture_scalar_outputs: bool = _option(
        False, BOOL, "Keep .item() and its kin in the graph, as numbers that only a run tells."
    )
    capture_dynamic_output_shape_ops: bool = _option(
        False, BOOL, "Keep operations in the graph whose output sizes depend on data (nonzero)."
    )
    specialize_int: bool = _option(
        False, BOOL, "Take every int as constant, however often it changes."
    )
    specialize_float: bool = _option(
        False, BOOL, "Take every float as constant, however often it changes."
    )
    force_parameter_static_shapes: bool = _option(
        True,
        BOOL,
        "Take the sizes of parameters as constant even where sizes are dynamic.",
    )
    nested_graph_breaks: bool = _option(
        True, BOOL, "Reserved: resume inside inlined callees after a break, which is always done."
    )
    logs: tuple[str, ...] = _option((), CHANNELS, "Channels to show, see dynacap.log.")
    hook: str = _option(
        "auto",
        _choice("auto", "pep523", "settrace"),
        "How frames below compiled code are reached; auto takes pep523 where it is built.",
    )
    backend: str = _option(
        "native", TEXT, "The backend of dynacap.compile where a call names none."
    )
    compiler: str = _option(
        "",
        TEXT,
        "The C compiler of backend 'native', with arguments; '': the first that works.",
    )
    keep_captures: bool = _option(
        False, BOOL, "Keep captures on disk, so that a later process begins with their entries."
    )
    cache_dir: str = _option(
        "", FOLDER, "Where backend 'native' keeps libraries; '': ~/.cache/dynacap/native."
    )
    cache_limit: int = _option(
        1 << 30, LIMIT, "Bytes of libraries that are kept; those not used for longest go first."
    )
    checker: str = _option(
        "auto",
        _choice("auto", "c", "python"),
        "Which guard checker runs; auto takes the C one where it is built.",
    )
    verify: int | str = _option(
        0,
        VERIFY,
        "First calls of each graph to compare with eager; 'heal' warns and goes on in eager.",
    )
    verify_folder: str = _option(
        "", FOLDER, "Where verify writes a program that shows the difference it found."
    )

    def __setattr__(self, name: str, value: object) -> None:
        kept = _checked(name, value)
        object.__setattr__(self, name, kept)
        for listener in _listeners.get(name, ()):
            listener()

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"dynacap.config.{name} cannot be deleted; set it to its default")

    def patch(self, changes: Mapping[str, object] | None = None, /, **more: object) -> "Patch":
        """Set options for the length of a ``with`` block or of the decorated function."""
        wanted = {**(changes or {}), **more}
        for name, value in wanted.items():
            _checked(name, value)
        return Patch(self, wanted)

    def describe(self) -> str:
        """A line for each option: its value and what it does."""
        return "\n".join(
            f"{f.name} = {getattr(self, f.name)!r}: {f.metadata['doc']}" for f in fields(self)
        )

    def __repr__(self) -> str:
        return (
            "Config(" + ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)) + ")"
        )


class Patch(contextlib.ContextDecorator):
    """Options set on entry and put back on exit, also by an exception; may be entered again."""

    def __init__(self, target: Config, changes: Mapping[str, object]) -> None:
        self._target = target
        self._changes = changes
        self._saved: list[dict[str, object]] = []

    def __enter__(self) -> Config:
        self._saved.append({name: getattr(self._target, name) for name in self._changes})
        for name, value in self._changes.items():
            setattr(self._target, name, value)
        return self._target

    def __exit__(self, *exc_info: object) -> None:
        for name, value in self._saved.pop().items():
            setattr(self._target, name, value)


_listeners: dict[str, list[Callable[[], None]]] = {}
_kinds: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Config)}


def on_change(name: str, listener: Callable[[], None]) -> None:
    """Have ``listener()`` called each time the option is set, with the new value in place."""
    _kind_of(name)
    _listeners.setdefault(name, []).append(listener)


def _kind_of(name: str) -> Kind:
    kind = _kinds.get(name)
    if kind is None:
        raise AttributeError(
            f"dynacap.config has no option {name!r}; it has: {', '.join(sorted(_kinds))}"
        )
    return kind


def _checked(name: str, value: object) -> object:
    kind = _kind_of(name)
    try:
        return kind.accept(value)
    except (TypeError, ValueError):
        message = f"dynacap.config.{name} was given {value!r}; it accepts {kind.words}"
    raise ValueError(message)


def _parsed(variable: str, text: str) -> object:
    name = variable.removeprefix("DYNACAP_").lower()
    kind = _kind_of(name)
    try:
        return kind.accept(kind.parse(text))
    except (TypeError, ValueError):
        message = f"the environment variable {variable} is {text!r}; it accepts {kind.words}"
    raise ValueError(message)


def from_environment(environ: Mapping[str, str]) -> Config:
    """The defaults, changed by the ``DYNACAP_*`` variables of ``environ``."""
    made = Config()
    for variable, text in environ.items():
        if not variable.startswith("DYNACAP_") or variable in BUILD_VARIABLES:
            continue
        if variable.removeprefix("DYNACAP_").lower() not in _kinds:
            # A variable of some other program is no reason to stop this one.
            warnings.warn(f"{variable} is set but dynacap has no such option", stacklevel=2)
            continue
        setattr(made, variable.removeprefix("DYNACAP_").lower(), _parsed(variable, text))
    return made


config = from_environment(os.environ)

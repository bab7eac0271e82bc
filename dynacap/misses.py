"""What is told of misses: which guard failed, with the values seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from dynacap import log
from dynacap.config import config
from dynacap.errors import DynacapError, GraphBreak
from dynacap.guards import ConstEq, Entry, EntryTable, Failure, GuardSet
from dynacap.guards.caches import Remembers
from dynacap.opcodes import decode

_breaks = log.channel("breaks")
_bytecode = log.channel("bytecode")
_guards = log.channel("guards")
_recompiles = log.channel("recompiles")
_KEPT = 6  # values shown of one guard
_REMEDIES = {
    "Tensor": "keep dtype, layout and rank the same between calls; a size that varies is made"
    " symbolic once it is seen to (dynacap.mark_dynamic does so from the start), unless"
    " dynamic=False, mark_static or what the program does with it fixes it",
    "Sizes": "the program works for some sizes alone (a comparison, a loop over them): pad to them,"
    " or mark the size static and raise the limit",
    "Length": "keep the number of elements the same between calls",
    "ItemsAhead": "loop over as many each time, or mend the break in the loop (dynacap.explain)",
    "DictKeys": "keep the keys the same between calls",
    "IdIs": "make the object once, outside the function, and use it in each call",
    "Remembers": "call the cached function with these arguments before",
    "ProcessState": "call it under the same torch settings, or compile one callable for each",
}
_CONSTANT_REMEDIES: dict[type, str] = {
    bool: "compile one callable for each, or set the flag once, when the module is made",
    int: "pass it as a tensor, or let it be symbolic (specialize_int, dynamic=): an index, a key or"
    " a text made of it fixes it",
    float: "pass it as a tensor: torch.tensor(value); int(), round(), a key or a text made of it"
    " fix it",
}
_REMEDY = "keep it the same between calls, or pass it as a tensor"


def _remedy(failure: Failure) -> str:
    """What to do about a guard that keeps failing."""
    if isinstance(failure.guard, ConstEq):
        return _CONSTANT_REMEDIES.get(type(failure.guard.value), _REMEDY)
    return _REMEDIES.get(type(failure.guard).__name__, _REMEDY)


class Recompiles:
    """The guards of one place that failed so far."""

    def __init__(self) -> None:
        self._failures: dict[str, list[Failure]] = {}
        self._told = False

    def clear(self) -> None:
        """Forget."""
        self._failures.clear()
        self._told = False

    def note(self, entries: Sequence[Entry], flat: tuple[object, ...]) -> tuple[Failure, ...]:
        """Note why no entry fits: the first guard of each that does not hold."""
        found = []
        for number, entry in enumerate(entries):
            failure = entry.checker.explain(flat)
            if failure is None:
                continue
            found.append(failure)
            if number == 0:  # the latest, with which the call before this one was at home
                known = self._failures.setdefault(failure.subject, [])
                known.append(failure)
                del known[:-_KEPT]
        return tuple(found)

    def log(self, place: str, failures: Sequence[Failure]) -> None:
        """A record of a recompile."""
        if _recompiles.enabled:
            text = told(failures)
            _recompiles.emit(f"recompiling {place}:\n{text}", place=place, failures=text)

    def warn(
        self, entries: Sequence[Entry], flat: tuple[object, ...], place: str, limit: str
    ) -> None:
        """The one warning of a place that reached a limit."""
        if not self._told:
            self._told = True
            self.note(entries, flat)
            log.warn(self.limit_text(place, limit), place=place, limit=limit)

    def limit_text(self, place: str, limit: str) -> str:
        """What happened, which guards kept failing, and what to do."""
        lines = [
            f"{place} reached dynacap.config.{limit} ({getattr(config, limit)}): where none of its"
            " entries fits, it runs as plain Python from now on. Guards that kept failing:"
        ]
        most = sorted(self._failures.items(), key=lambda item: -len(item[1]))
        for subject, failures in most:
            seen = dict.fromkeys(failure.found for failure in failures)
            origin = f" (needed at {failures[-1].origin})" if failures[-1].origin else ""
            lines.append(f"  {subject}: seen {', '.join(seen)}{origin}")
            lines.append(f"    what to do: {_remedy(failures[-1])}")
        lines.append(f"  or raise the limit: dynacap.config.{limit} = ...")
        return "\n".join(lines)


def drop_forgetful(table: EntryTable, flat: tuple[object, ...]) -> None:
    """Take out the entries captured where a cache had no result, once it has one."""
    for entry in table.entries:
        failure = entry.checker.explain(flat)
        if failure is not None and isinstance(failure.guard, Remembers):
            table.remove(entry)


def told(failures: Sequence[Failure]) -> str:
    """Failures as text, a line for each."""
    return "\n".join(f"  {failure}" for failure in failures)


def log_break(reason: DynacapError | None, message: str | None = None) -> None:
    """A record of a graph break, or of a frame that runs as plain Python."""
    if reason is None or not _breaks.enabled:
        return
    if isinstance(reason, GraphBreak):
        _breaks.emit(
            message or str(reason), reason=reason.reason, detail=reason.detail, hint=reason.hint,
            stack=[str(frame) for frame in reason.stack],
        )  # fmt: skip
    else:
        _breaks.emit(message or str(reason), reason=getattr(reason, "reason", "capture"))


def log_guards(place: str, guards: GuardSet) -> None:
    """A record of the guards of an entry."""
    if _guards.enabled:
        _guards.emit(
            f"{place}: {len(guards)} guards\n{guards}",
            place=place, count=len(guards), guards=[str(guard) for guard in guards],
        )  # fmt: skip


def log_bytecode(place: str, code: CodeType, start: int) -> None:
    """A record of the instructions that are captured, in canonical form."""
    if _bytecode.enabled:
        listing = "\n".join(
            f"{'->' if each.index == start else '  '} {each.line or '':>5} {each.index:4} {each}"
            for each in decode(code).instructions
        )
        _bytecode.emit(f"{place}:\n{listing}", place=place, start=start)


def warn_internal(place: str, key: int, error: Exception) -> None:
    """The one warning of an error inside dynacap itself."""
    log.warn_once(
        ("internal", key, type(error)),
        f"{place} runs as plain Python: an error inside dynacap ({type(error).__name__}: {error})."
        " Your program is not affected. Please report it to the maintainers with the traceback"
        " that dynacap.config.raise_internal_errors = True gives.",
        place=place,
        error=repr(error),
    )

"""Constructs × places × what happens there: nothing, a break, an exception, or both.

The programs of `constructs_*.py` have marked places. Each program runs with one of them replaced by
a call that breaks the graph (here or one frame further in), or raises, and is called three times
with changed inputs; all that can be seen is compared with eager, and no break may be taken that the
place, each time that it is reached, does not ask for.
"""

import functools
import inspect
import linecache
import re
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import dynacap
from dynacap.testing import Scenario, call, compare

FOLDER = Path(__file__).parent
PARTS = (FOLDER / "construct_parts.py").read_text()
SOURCES = {
    path.stem: PARTS + re.sub(r"from construct_parts import .*\n", "", path.read_text())
    for path in sorted(FOLDER.glob("constructs_*.py"))
}
PLACE = r"\bS\(((?:self\.)?log), {}\)"
KINDS = {
    "break": "told",
    "inner break": "broken_inside",
    "raise": "raising",
    "break and raise": "told_and_raising",
}
REACHED: list[int] = []


@dynacap.disable
def told(log: list[Any], place: int) -> int:
    print("told", place)
    REACHED.append(place)
    log.append(place)
    return place


def broken_inside(log: list[Any], place: int) -> int:
    log.append("before")
    dynacap.graph_break()
    log.append(place)
    return place


def raising(log: list[Any], place: int) -> int:
    log.append(place)
    if log[0] == 1:
        raise ValueError(f"at {place}")
    return place


@dynacap.disable
def told_and_raising(log: list[Any], place: int) -> int:
    print("told", place)
    return raising(log, place)


@functools.cache
def variant(source: str, kind: str, place: int) -> dict[str, Any]:
    """The programs of a file, with one place replaced."""
    name = f"<{source}: {kind} at {place}>"
    text = SOURCES[source]
    if kind:
        text = re.sub(PLACE.format(place), rf"{KINDS[kind]}(\1, {place})", text)
    module = types.ModuleType(source)
    module.__file__ = name
    vars(module).update({each: globals()[each] for each in KINDS.values()})
    exec(compile(text, name, "exec"), vars(module))
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return vars(module)


def programs() -> list[tuple[str, str]]:
    return [
        (source, name)
        for source in SOURCES
        for name, value in variant(source, "", 0).items()
        if isinstance(value, types.FunctionType)
        and list(inspect.signature(value).parameters) == ["x", "log", "n"]
    ]


def places(source: str, name: str) -> list[int]:
    """The places of a program, and of what it uses."""
    text = inspect.getsource(variant(source, "", 0)[name])
    used = [text, *(part for part in PARTS.split("\n\n\n") if re.search(_name(part), text))]
    return sorted(
        {
            int(each)
            for part in used
            for each in re.findall(PLACE.format(r"(\d+)"), part)
            for each in each[1:]
        }
    )


def _name(part: str) -> str:
    found = re.match(r"(?:class|(?:async )?def) (\w+)", part)
    return rf"\b{found[1]}\b" if found and found[1] not in ("S", "Pair") else r"(?!)"


def run(source: str, name: str, kind: str, place: int) -> Any:
    function = variant(source, kind, place)[name]
    x = torch.arange(6.0).reshape(2, 3)

    def build() -> Scenario:
        inputs = [(x, 0), (x + 1, 1), (x, 0)]
        return Scenario(function, [call(each.clone(), [n], n) for each, n in inputs])

    try:
        return compare(build)
    finally:
        dynacap.reset()


@pytest.mark.parametrize(("source", "name"), programs(), ids=lambda each: each)
def test_like_eager_wherever_it_breaks(source: str, name: str) -> None:
    plain = run(source, name, "", 0)
    assert not plain.problems, f"{name}:\n{plain}"
    for place in places(source, name):
        for kind in KINDS:
            REACHED.clear()
            outcome = run(source, name, kind, place)
            assert not outcome.problems, f"{kind} at {place} of {name}:\n{outcome}"
            if kind == "break":
                asked = plain.counters["breaks"] + len(REACHED) // 2
                # A generator that crosses a break is a real one, which runs on eagerly.
                asked += sum(n for why, n in outcome.reasons.items() if "a generator" in why)
                assert outcome.counters["breaks"] <= asked, f"at {place}: {outcome.reasons}"

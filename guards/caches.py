"""What a function under ``functools.lru_cache`` remembers, looked up without being counted.

The cache is found among what the garbage collector is shown of the wrapper, in this order: its
type, for each result of a cache that is bounded key, result and type of the link, then the dict of
the cache, the function, the mark before keyword arguments in keys, and a few more.
"""

import functools
import gc
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynacap.guards import raw
from dynacap.guards.constant import ConstKey
from dynacap.guards.iterators import Read
from dynacap.guards.kinds import Origin, SourceGuard, register
from dynacap.guards.raw import MISSING
from dynacap.guards.ref import Ref
from dynacap.guards.show import show
from dynacap.guards.source import PLAIN_KEYS, dict_key, says_what_it_equals

WRAPPER: Any = type(functools.lru_cache(len))
MOST_SEARCHED = 256
UNTOLD = object()  # what is found where looking could run code of the user's

_PARAMETERS = frozenset(
    made.cache_parameters.__code__ for made in (functools.lru_cache(len), functools.cache(len))
)


def key_for(wrapper: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The key under which a wrapper keeps its result for arguments; UNTOLD if it is not known."""
    told = vars(wrapper).get("cache_parameters")
    if getattr(told, "__code__", None) not in _PARAMETERS:
        return UNTOLD
    key, typed = args, told()["typed"]
    if kwargs:
        key += (_parts(wrapper)[2], *itertools.chain(*kwargs.items()))
    if typed:
        key += tuple(map(type, (*args, *kwargs.values())))
    if not _asks_nobody(key):
        return UNTOLD
    return key[0] if len(key) == 1 and type(key[0]) in (int, str) else key


def _parts(wrapper: Any) -> tuple[list[Any], dict[Any, Any], object]:
    """Keys, results and types in turn, the dict of the cache, and the mark."""
    held = gc.get_referents(wrapper)
    at = len(held) - (4 if type(held[-4]) is object else 3)
    return held[1 : at - 2], held[at - 2], held[at]


def look_up(wrapper: Any, key: Any) -> Any:
    """What a wrapper remembers under a key, MISSING if nothing, UNTOLD if that cannot be told."""
    links, cache, _ = _parts(wrapper)
    if len(cache) > MOST_SEARCHED or key is UNTOLD:
        return UNTOLD
    found = MISSING
    for known, result in zip(links[::3], links[1::3], strict=True) if links else cache.items():
        if type(known) not in PLAIN_KEYS and not _asks_nobody(known):
            return UNTOLD
        if known == key:
            found = result
    return found


def _asks_nobody(key: Any) -> bool:
    """Whether comparing a key runs no code of the user's."""
    if type(key) is tuple:
        return all(map(_asks_nobody, key))
    return type(key) in PLAIN_KEYS or not says_what_it_equals(key)


def kept(key: Any) -> Any:
    """A key as sources and guards keep it."""
    return tuple(map(kept, key)) if type(key) is tuple else dict_key(key)


def _given(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(map(_given, key))
    if type(key) is Ref:
        return UNTOLD if key.dead else key.get()
    return key.value if type(key) is ConstKey else key


class Remembered(Read):
    """What a wrapper remembers under a key."""

    __slots__ = ()
    op = "remembered"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        found = look_up(value, _given(key)) if raw.is_a(value, WRAPPER) else MISSING
        return MISSING if found is UNTOLD else found


@register
@dataclass(frozen=True)
class Remembers(SourceGuard):
    """Whether a wrapper remembers something under a key."""

    kind = "remembered"
    key: Any
    there: bool
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        found = look_up(values[0], _given(self.key)) if raw.is_a(values[0], WRAPPER) else UNTOLD
        return found is not UNTOLD and (found is not MISSING) is self.there

    def expectation(self) -> str:
        return f"remembers {'a' if self.there else 'no'} result for {show(_given(self.key))}"

    def finding(self, *values: object) -> str:
        return "another" if self.there else "one"


READS: tuple[type[Read], ...] = (Remembered,)

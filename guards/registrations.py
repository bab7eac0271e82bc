"""That classes are still no subclasses of abstract ones, for which they may be registered."""

import abc
import weakref


class Registrations:
    """Pairs of a class and an abstract one that it was no subclass of.

    While nothing has been registered anywhere, which CPython tells by a counter, nothing has to be
    asked again.  No class is kept alive.
    """

    def __init__(self) -> None:
        self._token = abc.get_cache_token()
        self._pairs: dict[tuple[weakref.ref[type], weakref.ref[abc.ABCMeta]], None] = {}

    def add(self, cls: type, base: abc.ABCMeta) -> None:
        """Note one more pair."""
        self._pairs[weakref.ref(cls), weakref.ref(base)] = None

    @property
    def pairs(self) -> list[tuple[type, abc.ABCMeta]]:
        """Those that are still alive."""
        found = ((cls(), base()) for cls, base in self._pairs)
        return [(cls, base) for cls, base in found if cls is not None and base is not None]

    def ask(self) -> bool:
        """Whether none of them is a subclass now."""
        return not any(abc.ABCMeta.__subclasscheck__(base, cls) for cls, base in self.pairs)

    def hold(self) -> bool:
        """Whether all is as it was."""
        token = abc.get_cache_token()
        if token != self._token:
            if not self.ask():
                return False
            self._token = token
        return True

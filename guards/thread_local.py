"""Attributes of ``threading.local``: a dict for each thread, read in the thread that asks."""

import threading
from typing import Any

from dynacap.guards.iterators import Read
from dynacap.guards.raw import MISSING


class ThreadDict(Read):
    """The dict that holds an object's attributes in this thread."""

    __slots__ = ()
    op = "thread_dict"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        return value.__dict__ if type(value) is threading.local else MISSING


READS: tuple[type[Read], ...] = (ThreadDict,)

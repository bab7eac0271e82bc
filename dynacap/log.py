"""Named channels of what dynacap does, as text through ``logging`` and as structured records.

``config.logs`` (``DYNACAP_LOGS``) chooses the channels that are shown, each by the logger
``dynacap.<channel>``.  A caller asks ``channel.enabled`` before it makes a message, so that a
channel which is off costs one attribute read::

    _graph = log.channel("graph")
    if _graph.enabled:
        _graph.emit(f"captured {count} operations", count=count)

Fields are kept as plain data (numbers, text, lists and dicts of them, anything else as its repr):
a record never keeps a tensor or a module alive.
"""

import contextlib
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from dynacap.config import LOG_CHANNELS, config, on_change

KEPT_RECORDS = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that happened: the channel, a readable message, and the same as data."""

    channel: str
    message: str
    fields: dict[str, object]
    when: float
    thread: int


class Channel:
    """One named stream of records.  ``enabled`` says whether anyone wants them."""

    __slots__ = ("_collectors", "_shown", "enabled", "logger", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.logger = logging.getLogger(f"dynacap.{name}")
        self.enabled = False
        self._shown = False
        self._collectors: list[list[Record]] = []

    def emit(self, message: str, **fields: object) -> None:
        """Keep the record, hand it to who collects, and show it if the channel is shown."""
        if not self.enabled:
            return
        plain = {name: _plain(value) for name, value in fields.items()}
        record = Record(self.name, message, plain, time.time(), threading.get_ident())
        for collector in tuple(self._collectors):
            collector.append(record)
        if self._shown:
            _kept.append(record)
            self.logger.info("%s", message, extra={"fields": plain})

    def show(self, shown: bool) -> None:
        """Turn the output through ``logging`` on or off; ``config.logs`` does this."""
        self._shown = shown
        self.logger.setLevel(logging.INFO if shown else logging.NOTSET)
        self._refresh()

    def add_collector(self, collector: list[Record]) -> None:
        """Also append each record to ``collector``."""
        self._collectors.append(collector)
        self._refresh()

    def remove_collector(self, collector: list[Record]) -> None:
        """Undo :meth:`add_collector`."""
        self._collectors = [c for c in self._collectors if c is not collector]
        self._refresh()

    def _refresh(self) -> None:
        self.enabled = self._shown or bool(self._collectors)


def channel(name: str) -> Channel:
    """The channel of that name; the same object each time."""
    found = _channels.get(name)
    if found is None:
        raise ValueError(f"no log channel {name!r}; there are: {', '.join(LOG_CHANNELS)}")
    return found


def records(name: str | None = None) -> list[Record]:
    """The latest records of the shown channels, oldest first; of one channel if it is named."""
    return [record for record in tuple(_kept) if name is None or record.channel == name]


@contextlib.contextmanager
def collect(*names: str) -> Iterator[list[Record]]:
    """Collect the records of these channels (all, if none is named), shown or not."""
    collector: list[Record] = []
    chosen = [channel(name) for name in names or LOG_CHANNELS]
    for one in chosen:
        one.add_collector(collector)
    try:
        yield collector
    finally:
        for one in chosen:
            one.remove_collector(collector)


def warn(message: str, **fields: object) -> None:
    """A warning on the logger ``dynacap``, shown whatever ``config.logs`` says."""
    plain = {name: _plain(value) for name, value in fields.items()}
    _kept.append(Record("warning", message, plain, time.time(), threading.get_ident()))
    _root.warning("%s", message, extra={"fields": plain})


def warn_once(key: object, message: str, **fields: object) -> None:
    """:func:`warn`, but once in this process for each ``key`` (until :func:`forget_warnings`)."""
    if key not in _warned:
        _warned.add(key)
        warn(message, **fields)


def forget_warnings() -> None:
    """Let :func:`warn_once` speak again; part of ``dynacap.reset()``."""
    _warned.clear()


def _plain(value: object) -> object:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return repr(value)


class _Handler(logging.Handler):
    """Writes to stderr where the program has set up no logging of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(f"[{record.name}] {record.getMessage()}", file=sys.stderr)


def _apply_config() -> None:
    for name, one in _channels.items():
        one.show(name in config.logs)


_kept: deque[Record] = deque(maxlen=KEPT_RECORDS)
_warned: set[object] = set()
_root = logging.getLogger("dynacap")
_channels = {name: Channel(name) for name in LOG_CHANNELS}
_root.addHandler(_Handler())
on_change("logs", _apply_config)
_apply_config()

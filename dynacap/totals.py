"""Totals of the process: what was captured, where it broke, what ran as plain Python."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from dynacap.errors import GraphBreak

_lock = threading.Lock()
_totals: Counter[str] = Counter()
_reasons: Counter[str] = Counter()
_NAMES = ("frames", "graphs", "ops", "breaks", "skipped", "recompiles", "recalled")


def add_capture(ops: int, reason: GraphBreak | None, again: bool, skipped: str | None) -> None:
    """Count a region that was captured: ``again`` if its place had an entry already."""
    with _lock:
        _totals["frames"] += 1
        _totals["graphs"] += bool(ops)
        _totals["ops"] += ops
        _totals["recompiles"] += again
        if reason is not None:
            _totals["breaks"] += 1
            _reasons[_text(reason)] += 1
        if skipped is not None:
            _totals["skipped"] += 1
            _reasons[skipped] += 1


def add_recalled() -> None:
    """Count a region whose entry an earlier process had kept on disk."""
    with _lock:
        _totals["recalled"] += 1


def add_skip(why: str) -> None:
    """Count a frame that runs as plain Python."""
    with _lock:
        _totals["skipped"] += 1
        _reasons[why.partition("\n")[0]] += 1


def _text(reason: GraphBreak) -> str:
    return f"{reason.reason}: {reason.detail}" if reason.detail else reason.reason


def read() -> dict[str, Any]:
    """The totals since the last reset; ``reasons`` maps each reason to its count."""
    with _lock:
        return {**{name: _totals[name] for name in _NAMES}, "reasons": dict(_reasons)}


def reset() -> None:
    """Start counting afresh."""
    with _lock:
        _totals.clear()
        _reasons.clear()

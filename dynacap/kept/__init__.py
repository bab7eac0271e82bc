"""Captures on disk: what one process found out, the next begins with (``config.keep_captures``)."""

from dynacap.kept.entries import recall, store

__all__ = ["recall", "store"]

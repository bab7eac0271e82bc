"""Runs a measurement in a forked process: a crash or a hang is a result like others."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from typing import Any


def isolated(work: Callable[[], dict[str, Any]], limit: int) -> tuple[dict[str, Any] | None, int]:
    """What ``work`` gives within so many seconds of CPU time, None if it does not; the status of
    the end.  The clock on the wall may go five times as far, since others may use the machine.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        signal.alarm(5 * limit)
        with os.fdopen(write_end, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return (json.loads(text) if text else None), status

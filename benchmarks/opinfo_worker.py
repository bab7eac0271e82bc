"""Judges operators one after another, for `opinfo.py`: names come in by lines, verdicts go out."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from typing import Any

import torch
from operators import judge, operators


def main() -> None:
    backend, (samples, seconds, together) = sys.argv[1], map(int, sys.argv[2:])
    torch.set_num_threads(1)
    table = operators()

    def hurry() -> None:
        signal.alarm(seconds)  # it ends this process, which is the verdict

    for name in sys.stdin.read().split("\n"):
        tell({"starts": name})
        try:
            verdict = judge(name, table[name], backend, samples or None, hurry, together)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            tell({"name": name, "kind": "failing", "problems": [f"harness: {told}"]})
        else:
            tell(asdict(verdict) | {"kind": verdict.kind})
        signal.alarm(0)


def tell(what: dict[str, Any]) -> None:
    """One line to the parent."""
    print(json.dumps(what), file=OUT, flush=True)


OUT = sys.stdout
sys.stdout = sys.stderr  # what operators print is no verdict

if __name__ == "__main__":
    main()

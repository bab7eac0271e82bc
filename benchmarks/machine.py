"""Where and with what a benchmark ran; results go to `results/` as JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch
import transformers

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    """The processor's name, as the operating system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def describe_machine() -> dict[str, Any]:
    """Processor, cores, Python and versions of what matters."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "unset"),
    }


def save(name: str, results: Any) -> Path:
    """Write results beside the description of the machine; return where."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    day = time.strftime("%Y-%m-%d")
    text = json.dumps({"day": day, "machine": describe_machine(), "results": results}, indent=1)
    path.write_text(text + "\n")
    return path

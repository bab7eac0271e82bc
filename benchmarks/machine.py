"""Where and with what a benchmark ran; results go to `results/` as JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    """The processor's name, as the operating system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version_of(package: str) -> str | None:
    """The version of a package that may not be there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_machine() -> dict[str, Any]:
    """Processor, cores, Python and versions of what matters."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": _version_of("transformers"),
        "threads": torch.get_num_threads(),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "unset"),
    }


def commit_here() -> str:
    """The commit that is checked out here; "" where git or its history is not there."""
    command = ["git", "-C", str(RESULTS.parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def save(name: str, results: Any) -> Path:
    """Write results beside the description of the machine; return where."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    day = time.strftime("%Y-%m-%d")
    text = json.dumps({"day": day, "machine": describe_machine(), "results": results}, indent=1)
    path.write_text(text + "\n")
    return path


def load(name: str) -> Any:
    """What was saved last under this name; None: nothing."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None

"""fxlite and the backends are light: they load without torch."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT, check=False
    )


@pytest.mark.parametrize("package", ["dynacap.fxlite", "dynacap.backends"])
def test_does_not_load_torch(package: str) -> None:
    done = run_python(f"import sys, {package}; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr

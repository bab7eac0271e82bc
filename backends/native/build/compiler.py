"""Which C compiler there is, and how it is called."""

from __future__ import annotations

import functools
import importlib.util
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dynacap.config import config

FLAGS = ("-std=gnu11", "-O3", "-march=native", "-shared", "-fPIC", "-w")
FLOATS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
# In vector code GCC takes pow(x, 0.5) for sqrt(x), which differ for -inf and -0.0.
POWERS = ("-fno-builtin-pow", "-fno-builtin-powf")
# Integers wrap as torch's do, and one place in the arena holds numbers of several types.
MEANING = ("-fwrapv", "-fno-strict-aliasing")
# Compilers take half of AVX-512's width of themselves; exp, tanh and the like are 1.5 times as
# fast in whole vectors.
VECTORS = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
HOW_TO_GET_ONE = (
    "install gcc or clang (apt install gcc), name one in DYNACAP_COMPILER, or"
    " pip install 'dynacap[cc]', which brings the zig compiler"
)


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C, and what it and the machine are called in a cache's keys."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    identity: str

    def compile(self, source: Path, library: Path) -> None:
        """Make a shared library of a C file; CompileError with the compiler's own words."""
        command = [*self.command, *self.flags, "-o", str(library), str(source), "-lm"]
        # A group of its own: Ctrl-C is for the program, which may go on.
        done = subprocess.run(command, capture_output=True, text=True, check=False, process_group=0)
        if done.returncode:
            raise CompileError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")


class CompileError(RuntimeError):
    """The C compiler refused what was generated."""


def find_compiler() -> Compiler | None:
    """``config.compiler``, or the first that works: cc, gcc, clang, the ziglang package."""
    return _found(config.compiler)


@functools.cache
def _found(named: str) -> Compiler | None:
    for command in [tuple(named.split())] if named else _candidates():
        version = _version(command)
        if version is not None:
            flags = (*FLAGS, *FLOATS, *POWERS, *MEANING, *VECTORS, *_openmp(command))
            return Compiler(command, flags, f"{version}\n{_machine()}")
    return None


def _candidates() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [
        (path,) for name in ("cc", "gcc", "clang") if (path := shutil.which(name))
    ]
    if importlib.util.find_spec("ziglang") is not None:
        found.append((sys.executable, "-m", "ziglang", "cc"))
    return found


def _version(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return f"{' '.join(command)}\n{done.stdout}" if done.returncode == 0 else None


def _openmp(command: tuple[str, ...]) -> tuple[str, ...]:
    return () if "ziglang" in command else ("-fopenmp",)


@functools.cache
def _machine() -> str:
    """The processor: ``-march=native`` makes code for this kind alone."""
    lines = [platform.machine(), platform.system()]
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "\n".join([*lines, platform.processor()])
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features")
    block = text.split("\n\n")[0].splitlines()
    return "\n".join(lines + [line for line in block if line.split("\t")[0].strip() in wanted])

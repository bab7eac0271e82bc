"""Run the Python that runs this file in an environment of this clone, made when it is not there.

    python3.12 .ci/in_environment.py -m pytest tests/hook

The environment is `.venvs/3.12`: the editable install of this clone and the small packages of the
tests.  Torch is large and the same for all clones, so it lies in a cache folder outside of them
(`$XDG_CACHE_HOME/dynacap`, by default `~/.cache/dynacap`), one for each Python and pinned version;
a Python that brings that torch itself keeps its own.  Where torch cannot be installed (no room, no
network) that is said, loudly, and what works without it is run.  The standard library is enough.
"""

import fcntl
import hashlib
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "{}.{}".format(*sys.version_info)
CONSTRAINTS = ROOT / "constraints.txt"
LARGE = ("torch", "numpy")
SMALL = ("bytecode", "rich", "attrs", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist",
         "setuptools", "wheel")  # fmt: skip
ROOM = 9 * 2**30  # what torch's CUDA build takes while it is unpacked
MARKER = ".complete"


class NoTorch(Exception):
    """Torch cannot be had on this Python; the message says why."""


def pins() -> dict[str, str]:
    """Package → its pinned version."""
    lines = CONSTRAINTS.read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def cache_folder() -> Path:
    """Where what clones share is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dynacap"


def run(*command: str | Path, **variables: str) -> None:
    """Run a command; its output is shown only if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, command[0])


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time makes a folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def packages_of(python: Path) -> Path:
    """The folder in which an environment's packages lie."""
    return python.parent.parent / "lib" / f"python{VERSION}" / "site-packages"


def install(python: Path, *packages: str) -> None:
    """Install packages in the versions that are pinned."""
    run(python, "-m", "pip", "install", "-q", "-c", CONSTRAINTS, *packages)


def own_torch() -> Path | None:
    """The packages of the running Python, if the pinned torch is among them."""
    try:
        here = metadata.version("torch").split("+")[0] == pins()["torch"]
    except metadata.PackageNotFoundError:
        return None
    return Path(site.getsitepackages()[0]) if here else None


def shared_torch() -> Path:
    """The packages of the cached environment with torch, which is made if it is not there."""
    wanted = pins()
    name = "-".join([VERSION, *(f"{package}-{wanted[package]}" for package in LARGE)])
    folder = cache_folder() / name
    python = folder / "bin" / "python"
    with locked(folder):
        if not (folder / MARKER).exists() or not python.exists():
            make_shared(folder, python)
    return packages_of(python)


def make_shared(folder: Path, python: Path) -> None:
    """Make the cached environment anew; NoTorch if that fails."""
    shutil.rmtree(folder, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free
    if free < ROOM:
        raise NoTorch(f"{folder.parent} has {free >> 30} GB of room, torch wants {ROOM >> 30}")
    print(f"installing torch for Python {VERSION} into {folder}; this takes minutes", flush=True)
    run(sys.executable, "-m", "venv", folder)
    try:
        install(python, *LARGE)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NoTorch("pip could not install it (its words are above)") from error
    (folder / MARKER).touch()


def fingerprint(torch: Path | None) -> str:
    """What the small environment depends on; another fingerprint makes it anew."""
    parts = (CONSTRAINTS.read_text(), Path(__file__).read_text(), sys.executable, torch)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def environment(torch: Path | None) -> Path:
    """The Python of this clone's environment, which is made if it is not there or out of date."""
    folder = ROOT / ".venvs" / VERSION
    python, marker = folder / "bin" / "python", folder / MARKER
    with locked(folder):
        if not marker.exists() or marker.read_text() != fingerprint(torch):
            shutil.rmtree(folder, ignore_errors=True)
            run(sys.executable, "-m", "venv", folder)
            if torch is not None:
                (packages_of(python) / "torch.pth").write_text(f"{torch}\n")
            install(python, *SMALL)
            marker.write_text(fingerprint(torch))
        editable = ("--no-deps", "--no-build-isolation", "-e", ROOT)
        run(python, "-m", "pip", "install", "-q", *editable, DYNACAP_EXTENSIONS="require")
    return python


def main() -> int:
    """Make what is missing, run the command, and say at the end what it ran without."""
    why = ""
    torch = None
    try:
        torch = own_torch() or shared_torch()
    except NoTorch as error:
        why = f"\n*** Python {VERSION} HAS NO TORCH: {error}.\n*** Only the tests without it ran.\n"
    python = environment(torch)
    done = subprocess.run([str(python), *sys.argv[1:]], check=False)
    print(why, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

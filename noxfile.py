"""Tests on the other Pythons of this machine: what works without torch, on each of them.

The executor is for the Python that .venv has; the hook, the guard checker and the graph are for
all supported ones, and are built and tested on each that is found (on PATH, or under pyenv).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
FOLDERS = ("tests/hook", "tests/guards", "tests/fxlite", "tests/level0")

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["pythons"]


def works(python: str, version: str) -> bool:
    """Whether this is a Python of that version; a pyenv shim may exist and refuse to run."""
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str) -> str | None:
    """The path of a Python of that version, if this machine has one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [
        shutil.which(f"python{version}"),
        *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)),
    ]
    return next((place for place in places if place and works(place, version)), None)


def others() -> list[str]:
    """A Python of each supported version but the running one, where there is one."""
    running = "{}.{}".format(*sys.version_info)
    found = {version: find(version) for version in SUPPORTED if version != running}
    return [path for path in found.values() if path]


@nox.session(python=others() or False)
def pythons(session: nox.Session) -> None:
    """Install with the extensions required, and run the tests that need no torch."""
    if session.python is False:
        session.skip("no other supported Python on this machine")
    session.install("-c", "constraints.txt", "setuptools", "wheel")
    session.install(
        "-c", "constraints.txt", "bytecode", "rich", "pytest", "pytest-timeout", "hypothesis"
    )
    session.install(
        "--no-deps", "--no-build-isolation", "-e", ".", env={"DYNACAP_EXTENSIONS": "require"}
    )
    tests = [folder for folder in FOLDERS if Path(folder).is_dir()]
    session.run("python", "-m", "pytest", "-q", "-m", "not torch and not slow", *tests)

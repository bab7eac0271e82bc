"""The tests on every supported Python of this machine.

    nox -s tests-3.12             the whole suite on one Python (tests/models aside)
    nox -s pythons                what CI runs: the tests of capture on every other Python found
    nox -s tests-3.12 -- ARGS     pytest with these arguments instead

A Python is looked for in the variable `PYTHON_3_14` (a command: the path of a Python, or
words before one, such as those that enter a container in which it lives), on PATH, and under pyenv.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nox

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
RUNNING = "{}.{}".format(*sys.version_info)
SUITE = ("-n", "2", "--ignore=tests/models", "--ignore=tests/rules/test_packaging.py")
# What can differ from one Python to the next: bytecode, frames, and what runs on them.
CAPTURE = (
    "-n", "2", "-m", "not slow", "tests/rules/test_opcodes.py", "tests/opcodes", "tests/resume",
    "tests/programs", "tests/adversarial", "tests/dynacap", "tests/hook", "tests/guards",
    "tests/level0", "tests/data_model", "tests/builtins", "tests/effects",
)  # fmt: skip

nox.options.sessions = ["pythons"]


def works(command: list[str], version: str) -> bool:
    """Whether this starts a Python of that version; a pyenv shim may exist and refuse to run."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [*command, "-c", program], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str) -> list[str] | None:
    """The command that starts a Python of that version, if this machine has one."""
    if version == RUNNING:
        return [sys.executable]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shlex.split(os.environ.get(f"PYTHON_{version.replace('.', '_')}", ""))
    places = [
        named,
        [shutil.which(f"python{version}") or ""],
        *([str(path)] for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))),
    ]
    found = next((place for place in places if place and works(place, version)), None)
    if named and found is not named:
        raise SystemExit(f"{shlex.join(named)} does not start Python {version}")
    return found


def run_tests(session: nox.Session, python: list[str], arguments: tuple[str, ...]) -> None:
    """Run pytest on a Python: the running one as it is, another in its environment."""
    inside = [] if python == [sys.executable] else [".ci/in_environment.py"]
    session.run(*python, *inside, "-m", "pytest", "-q", *arguments, external=True)


def whole_suite(session: nox.Session) -> None:
    """The whole suite on one Python."""
    version = session.name.removeprefix("tests-")
    python = find(version)
    if python is None:
        session.error(f"no Python {version} on this machine (see the head of noxfile.py)")
    run_tests(session, python, tuple(session.posargs) or SUITE)


for each in SUPPORTED:
    nox.session(python=False, name=f"tests-{each}")(whole_suite)


@nox.session(python=False)
def pythons(session: nox.Session) -> None:
    """The tests of capture on every supported Python but the running one, where there is one."""
    for version in SUPPORTED:
        if version == RUNNING:
            continue
        python = find(version)
        if python is None:
            session.warn(f"PYTHON {version} IS NOT TESTED: this machine has none")
        else:
            run_tests(session, python, tuple(session.posargs) or CAPTURE)

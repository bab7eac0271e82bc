"""Run mypy over the four source folders as the one package that they install as, and the tests.

A type checker that follows the checkout itself finds ``dynacap/`` and takes ``dynacap.guards`` and
the others for missing, or leaves them out and reports success.  So ``build/typecheck`` is laid out
with links, every package where its import name says, and mypy must have checked every file of it.

    python .ci/typecheck.py           lay out the view, run mypy
    python .ci/typecheck.py --view    only lay out the view (for an editor or pyright)
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VIEW = ROOT / "build" / "typecheck"
BESIDE = ("tests", "examples", "benchmarks")
CHECKED = ("dynacap", *BESIDE)


def mapped_folders() -> dict[str, Path]:
    """Import name → folder, as pyproject.toml has it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    mapping: dict[str, str] = settings["tool"]["setuptools"]["package-dir"]
    return {name: ROOT / folder for name, folder in mapping.items()}


def make_view(view: Path = VIEW) -> Path:
    """Lay out the view anew, as links, and return its folder."""
    shutil.rmtree(view, ignore_errors=True)
    package = view / "dynacap"
    package.mkdir(parents=True)
    folders = mapped_folders()
    for entry in folders["dynacap"].iterdir():
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    for name, folder in folders.items():
        if name != "dynacap":
            (package / name.removeprefix("dynacap.")).symlink_to(folder)
    for name in BESIDE:
        if any((ROOT / name).rglob("*.py")):
            (view / name).symlink_to(ROOT / name)
    return view


def source_files() -> list[Path]:
    """Every Python file of the four packages: all that a check of the view must have seen."""
    return sorted(path for folder in mapped_folders().values() for path in folder.rglob("*.py"))


def main() -> int:
    """Check everything; the exit status says whether it is all right and all was seen."""
    view = make_view()
    if "--view" in sys.argv:
        return 0
    packages = [option for name in CHECKED if (view / name).exists() for option in ("-p", name)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *packages],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    # A reader, or an editor that follows the message, wants the file that git knows.
    print(re.sub(r"build/typecheck/(dynacap/(?=guards|fxlite|backends))?", "", done.stdout), end="")
    counted = re.search(r"(?:checked|no issues found in) (\d+) source file", done.stdout)
    if counted is None or int(counted[1]) < len(source_files()):
        print(f"mypy did not see all of the {len(source_files())} source files")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

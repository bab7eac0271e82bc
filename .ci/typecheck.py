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
SCRIPTS = ("examples", "benchmarks")  # run as scripts, so each folder is where its imports start


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
    (view / "tests").symlink_to(ROOT / "tests")
    (view / "scripts").mkdir()
    for path in script_modules():
        (view / "scripts" / path.name).symlink_to(path)
    return view


def script_modules() -> list[Path]:
    """The modules and packages that lie in the folders of scripts."""
    entries = [entry for name in SCRIPTS for entry in (ROOT / name).glob("*")]
    return [entry for entry in entries if entry.suffix == ".py" or any(entry.glob("*.py"))]


def source_files() -> list[Path]:
    """Every Python file of the four packages: all that a check of the view must have seen."""
    return sorted(path for folder in mapped_folders().values() for path in folder.rglob("*.py"))


def main() -> int:
    """Check everything; the exit status says whether it is all right and all was seen."""
    make_view()
    if "--view" in sys.argv:
        return 0
    options = ["-p", "dynacap", "-p", "tests"]
    for path in script_modules():
        options += ["-p" if path.is_dir() else "-m", path.stem]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    # A reader, or an editor that follows the message, wants the file that git knows.
    print(
        re.sub(r"build/typecheck/(dynacap/(?=guards|fxlite|backends)|scripts/)?", "", done.stdout),
        end="",
    )
    counted = re.search(r"(?:checked|no issues found in) (\d+) source file", done.stdout)
    if counted is None or int(counted[1]) < len(source_files()):
        print(f"mypy did not see all of the {len(source_files())} source files")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

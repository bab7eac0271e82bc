"""What installs is what the tree holds, and each dependency has its reason written down."""

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
SHIPPED_SUFFIXES = {".py", ".pyi", ".h", ".typed"}


def load(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shipped_tree() -> set[str]:
    """The files of the four folders that belong in a wheel, by their place in it."""
    return {
        f"{name.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}"
        for name, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if (path.suffix in SHIPPED_SUFFIXES or path.name == "py.typed")
        and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What a wheel built from this tree holds."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    subprocess.run(["git", "init", "-q", tree], check=True)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        (tree / name).write_bytes((ROOT / name).read_bytes())
    for source in FOLDERS.values():
        (tree / source).symlink_to(ROOT / source)
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=tree,
        env={"DYNACAP_EXTENSIONS": "off", "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_the_tree(wheel_files: set[str]) -> None:
    shipped = {name for name in wheel_files if ".dist-info/" not in name}
    tree = shipped_tree()
    assert shipped - tree == set(), "in the wheel but not in the tree"
    assert tree - shipped == set(), "missing from the wheel"


def test_each_package_is_typed(wheel_files: set[str]) -> None:
    assert {f"{name.replace('.', '/')}/py.typed" for name in FOLDERS} <= wheel_files


@pytest.mark.parametrize("name", FOLDERS)
def test_packages_are_where_the_checkout_says(name: str) -> None:
    found = Path(str(importlib.import_module(name).__file__)).parent
    assert found.resolve() == (ROOT / FOLDERS[name]).resolve()


@pytest.mark.parametrize("folder", [f for name, f in FOLDERS.items() if "." in name])
def test_a_folder_is_not_importable_by_its_own_name(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"import this package as dynacap.{folder}" in done.stderr


def test_type_checkers_see_every_file(tmp_path: Path) -> None:
    script = load(ROOT / ".ci" / "typecheck.py")
    view = script.make_view(tmp_path / "view")
    seen = {path.resolve() for path in _python_files(view / "dynacap")}
    assert seen == {path.resolve() for path in script.source_files()}


def _python_files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():  # rglob does not follow links
        if entry.is_dir():
            yield from _python_files(entry)
        elif entry.suffix == ".py":
            yield entry


def _dependency_names() -> set[str]:
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(d for group in project["optional-dependencies"].values() for d in group),
        *(d for group in PROJECT["dependency-groups"].values() for d in group),
    ]
    return {re.split(r"[<>=!~ \[]", dependency)[0] for dependency in wanted}


@pytest.mark.parametrize("name", sorted(_dependency_names()))
def test_each_dependency_has_a_reason(name: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert re.search(rf"^\| `{re.escape(name)}` \| .{{10,}} \|$", text, re.MULTILINE), (
        f"CONTRIBUTING.md's table of dependencies has no row with a reason for {name}"
    )


@pytest.mark.parametrize("name", sorted(_dependency_names()))
def test_each_dependency_is_pinned(name: str) -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert any(pin.lower().startswith(f"{name.lower()}==") for pin in pins)

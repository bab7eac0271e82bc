"""What every test runs under: this checkout's packages, strict options, a fixed seed."""

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynacap.config import config as options
from dynacap.errors import InternalError
from dynacap.opcodes import Code
from dynacap.opcodes.analysis import Stack, stacks, successors
from dynacap.opcodes.canonical import OPS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests import what they share as ``tests.…``
LOAD_TORCH = frozenset(
    "torch transformers cpython_suite soak_threads zoo dynacap.testing tests.fuzz.run".split()
)
HAS_TORCH = importlib.util.find_spec("torch") is not None
FOLDERS = {
    "dynacap": ROOT / "dynacap",
    "dynacap.guards": ROOT / "guards",
    "dynacap.fxlite": ROOT / "fxlite",
    "dynacap.backends": ROOT / "backends",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--installed`` tests the installed package instead of this checkout's."""
    parser.addoption(
        "--installed", action="store_true", help="test an installed dynacap, not this checkout"
    )


def pytest_configure(config: pytest.Config) -> None:
    """What captured code does is tested with the graphs' own Python code, unless
    ``DYNACAP_BACKEND`` says otherwise; with libraries that tests have made, none of the user's; and
    never with a mixture of two checkouts: each package must come from this one.
    """
    options.backend = os.environ.setdefault("DYNACAP_BACKEND", "eager")
    made = str(config.cache.mkdir("dynacap"))
    options.cache_dir = os.environ.setdefault("DYNACAP_CACHE_DIR", made)
    if config.getoption("--installed"):
        return
    for name, folder in FOLDERS.items():
        found = Path(str(importlib.import_module(name).__file__)).resolve().parent
        if found != folder.resolve():
            raise pytest.UsageError(f"{name} comes from {found}; run: pip install -e .")


def _imports_torch(path: Path) -> bool:
    """Whether the module imports torch, or something that does, as soon as it is loaded."""
    names = {name for node in ast.parse(path.read_text()).body for name in _imported_names(node)}
    heads = {name.split(".")[0] for name in names}
    return not (heads | names).isdisjoint(LOAD_TORCH)


def _imported_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that need torch where there is none (as deselecting them would)."""
    if not HAS_TORCH and collection_path.suffix == ".py" and _imports_torch(collection_path):
        return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that tests were left out."""
    if not HAS_TORCH:
        terminalreporter.write_line(
            "NO TORCH HERE: the tests that need it did not run", yellow=True
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a file that imports torch carry the marker ``torch`` without saying so."""
    needs = {path: _imports_torch(path) for path in {item.path for item in items}}
    for item in items:
        if needs[item.path]:
            item.add_marker(pytest.mark.torch)


@pytest.fixture(autouse=True)
def _strict_options() -> Iterator[None]:
    """Errors inside dynacap fail a test instead of quietly running plain Python."""
    with options.patch(raise_internal_errors=True):
        yield


@pytest.fixture(scope="session")
def verify() -> Callable[[Code], None]:
    """Checks a code object's canonical instructions: stack balance, depth, and jump targets."""
    return _verify


def _verify(code: Code) -> None:
    """Raise InternalError where the instructions do not hold together."""
    name = code.code.co_qualname
    for instruction in code.instructions:
        if instruction.op not in OPS:
            raise InternalError(f"{name}: no entry in the canonical table for {instruction}")
        if instruction.target is not None and not 0 <= instruction.target < len(code):
            raise InternalError(f"{name}: {instruction} leaves the function")
    try:
        found = stacks(code)
    except (ValueError, IndexError) as error:
        raise InternalError(f"{name}: the stack does not balance: {error}") from error
    deepest = max((_deepest_at(code, at, each) for at, each in enumerate(found) if each), default=0)
    if deepest > code.code.co_stacksize:
        raise InternalError(f"{name}: needs {deepest} stack slots of {code.code.co_stacksize}")


def _deepest_at(code: Code, index: int, stack: Stack) -> int:
    """Return the larger of the depths before and after one instruction, or 0 within an original."""
    if not code.is_boundary(index) or not code.is_boundary(index + 1):
        return 0
    return max([len(stack), *(len(after) for _, after in successors(code, index, stack))])

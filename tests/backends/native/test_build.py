"""The disk cache of compiled libraries, and graphs while, or although, there is no library."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch

import dynacap
from dynacap import log
from dynacap.backends.native import backend, build
from dynacap.backends.native.build.cache import Cache, NotPrivate

pytestmark = [pytest.mark.torch, pytest.mark.cc]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache of the test's own."""
    with dynacap.config.patch(cache_dir=str(tmp_path / "cache"), raise_internal_errors=False):
        yield tmp_path / "cache"
    dynacap.reset()
    log.forget_warnings()


def run(value: float = 1.0, **how: Any) -> torch.Tensor:
    x = torch.arange(4.0)
    result: torch.Tensor = dynacap.compile(lambda x: (x + value).exp(), backend="native", **how)(x)
    torch.testing.assert_close(result, (x + value).exp())
    return result


def counts() -> tuple[int, int, int]:
    info = dynacap.cache_info()
    return info.entries, info.hits, info.misses


def test_the_second_compile_finds_the_library() -> None:
    run()
    assert counts() == (1, 0, 1)
    run()
    assert counts() == (1, 1, 1)
    run(2.0)
    assert counts() == (2, 1, 2)
    dynacap.clear_cache()
    assert counts() == (0, 1, 2)
    run()
    assert counts() == (1, 1, 3)


def test_another_process_compiles_nothing(folder: Path) -> None:
    code = (
        "import torch, dynacap\n"
        "f = dynacap.compile(lambda x: (x + 1.0).exp(), backend='native')\n"
        "f(torch.arange(4.0))\n"
        "info = dynacap.cache_info(); print(info.hits, info.misses)"
    )
    environment = {**os.environ, "DYNACAP_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code]
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["0 1\n", "1 0\n"]


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, None])
def test_a_damaged_library_is_built_again(folder: Path, damage: bytes | None) -> None:
    run()
    (library,) = folder.glob("*.so")
    whole = library.read_bytes()
    library.unlink()  # not in place: this process has it mapped
    library.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    dynacap.reset()
    run()
    assert counts()[2] == 2
    assert library.read_bytes()[:4] == b"\x7fELF"


def test_what_others_can_write_is_not_loaded(folder: Path) -> None:
    run()
    (library,) = folder.glob("*.so")
    library.chmod(0o666)
    run()
    assert counts()[2] == 2
    assert library.stat().st_mode & 0o777 == 0o600
    folder.chmod(0o777)
    with pytest.raises(NotPrivate, match="chmod 700"):
        Cache(folder).library("key", lambda path: None)
    folder.chmod(0o700)
    folder.parent.chmod(0o777)
    with pytest.raises(NotPrivate):
        Cache(folder).library("key", lambda path: None)
    folder.parent.chmod(0o700)


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    run()
    (library,) = folder.glob("*.so")
    elsewhere = tmp_path / "elsewhere.so"
    library.rename(elsewhere)
    library.symlink_to(elsewhere)
    run()
    assert not library.is_symlink()


def sixty_bytes(path: Path) -> None:
    path.write_bytes(b"x" * 60)


def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
    cache = Cache(folder, limit_bytes=250)
    for key in ("a", "b"):
        cache.library(key, sixty_bytes)
    oldest, newer = (cache.library(key, lambda path: None) for key in ("a", "b"))
    os.utime(oldest, (1, 1))
    cache.library("c", sixty_bytes)
    assert not oldest.exists()
    assert newer.exists()


def test_a_compile_that_fails_leaves_nothing(folder: Path) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        Cache(folder).library("key", fail)
    assert not list(folder.iterdir())


def test_without_a_compiler_graphs_run_eagerly(caplog: pytest.LogCaptureFixture) -> None:
    with (
        dynacap.config.patch(compiler="/nonexistent/cc"),
        caplog.at_level(logging.WARNING, "dynacap"),
    ):
        run()
        run(2.0)
    (said,) = [record.message for record in caplog.records]
    assert "no C compiler" in said
    assert build.HOW_TO_GET_ONE in said


def test_a_compiler_that_refuses_is_told_of_and_the_graph_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    compiler = build.find_compiler()
    assert compiler is not None
    with (
        dynacap.config.patch(compiler=f"{compiler.command[0]} -Werror -include nonexistent.h"),
        caplog.at_level(logging.WARNING, "dynacap"),
    ):
        run()
    assert any("could not be built" in record.message for record in caplog.records)


def test_in_the_background_no_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Future[Path] = Future()
    monkeypatch.setattr(backend, "build_later", lambda source, compiler: library)
    x = torch.arange(4.0)
    function = dynacap.compile(lambda x: (x + 1).exp(), backend="native", mode="background")
    for number in range(4):
        torch.testing.assert_close(function(x), (x + 1).exp())
        if number == 1:
            library.set_exception(OSError("no space"))


@pytest.mark.parametrize("stage", ["lower", "program_source", "build_later"])
@pytest.mark.parametrize("mode", ["default", "background"])
def test_no_stage_that_fails_harms_the_user(
    stage: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in a backward graph, which is compiled in the user's own ``backward()``."""

    def fail(*args: Any, **how: Any) -> Any:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(backend, stage, fail)
    x = torch.arange(4.0, requires_grad=True)
    dynacap.compile(lambda x: (x + 1).exp().sum(), backend="native", mode=mode)(x).backward()
    torch.testing.assert_close(x.grad, (x.detach() + 1).exp())


def printed_by(code: str, folder: Path) -> str:
    """What a program prints that keeps its libraries there."""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "DYNACAP_CACHE_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_child_of_a_fork_compiles(folder: Path) -> None:
    code = (
        "import os, signal, torch, dynacap\n"
        "x = torch.arange(4.0)\n"
        "dynacap.compile(lambda x: (x + 1.0).exp(), backend='native')(x)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    dynacap.compile(lambda x: (x + 2.0).exp(), backend='native')(x)\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])"
    )
    assert printed_by(code, folder) == "0\n"


def test_a_child_begins_again_what_its_parent_was_compiling(folder: Path) -> None:
    code = (
        "import os, signal, time, torch, dynacap\n"
        "from concurrent.futures import Future\n"
        "from dynacap.backends.native import backend\n"
        "build, backend.build_later = backend.build_later, lambda *given: Future()\n"
        "x = torch.arange(4.0)\n"
        "f = dynacap.compile(lambda x: (x + 1.0).exp(), backend='native', mode='background')\n"
        "f(x)\n"
        "backend.build_later = build\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    while dynacap.cache_info().entries < 1:\n"
        "        f(x)\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])"
    )
    assert printed_by(code, folder) == "0\n"


def test_without_a_home_libraries_are_kept_for_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", "/proc/nobody")
    build.build._own_folder.cache_clear()
    try:
        with dynacap.config.patch(cache_dir=""):
            run()
            assert dynacap.cache_info().entries == 1
            assert not caplog.records
    finally:
        shutil.rmtree(build.build._own_folder())
        build.build._own_folder.cache_clear()


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(dynacap.BackendCompilerFailed, match="native"):
        run(mode="fast")


@pytest.mark.parametrize(
    "mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
)
def test_modes_of_torch_compile_are_taken(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    run(mode=mode)
    assert counts()[0] == 1
    assert not caplog.records


def test_options_of_others_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    run(options={"triton.cudagraphs": True})
    assert counts()[0] == 1
    assert "backend 'native' has no use for options={'triton.cudagraphs': True}" in caplog.text

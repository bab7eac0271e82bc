"""``same(fn, *args)``: a function lowered, compiled and run as kernels and calls, against eager."""

import ctypes
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import dynacap  # noqa: E402
from dynacap import log  # noqa: E402
from dynacap.backends.native.c.kernels import kernels_source  # noqa: E402
from dynacap.backends.native.loops.kernel import Kernel  # noqa: E402
from dynacap.backends.native.loops.program import Buffer, Call, Program, View  # noqa: E402
from dynacap.backends.native.lowering import lower  # noqa: E402

_FLAGS = (
    "-O2 -ftree-vectorize -march=native -fopenmp -fno-math-errno -fno-trapping-math"
    " -ffp-contract=off -fno-builtin-pow -fno-builtin-powf -fwrapv -fno-strict-aliasing -shared"
    " -fPIC"
).split()
_TORCH = Path(torch.__file__).parent / "lib"


class Lowered:
    """A function's program, with its kernels compiled."""

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any], folder: Path) -> None:
        graph = make_fx(fn, tracing_mode="fake")(*args).graph
        self.program: Program = lower(graph)
        self.kernels = [s for s in self.program.steps if isinstance(s, Kernel)]
        self.calls = [str(s.target) for s in self.program.steps if isinstance(s, Call)]
        self.source = kernels_source(self.kernels)
        path = folder / f"{len(list(folder.iterdir()))}.c"
        path.write_text(self.source.replace("static void", "void"))
        library = path.with_suffix(".so")
        links = [f"-L{_TORCH}", "-ltorch_cpu", f"-Wl,-rpath,{_TORCH}", "-lm"]
        subprocess.run(["cc", *_FLAGS, str(path), "-o", str(library), *links], check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, *args: Any) -> list[Any]:
        """Run the steps one by one."""
        self.fault = 0  # whether an index lay outside
        self.memory: dict[Buffer, Any] = {
            buffer: value
            for buffer, value in zip(self.program.inputs, args, strict=True)
            if isinstance(buffer, Buffer)
        }
        self.memory.update({b: b.value for b in self.program.buffers if b.kind == "constant"})
        self.bases = {s.result: s.base for s in self.program.steps if isinstance(s, View)}
        for step in self.program.steps:
            if isinstance(step, Kernel):
                pointers = [self.tensor(b).data_ptr() for b in (*step.reads, *step.writes)]
                fault = ctypes.c_int32(0)
                more = [ctypes.byref(fault)] * step.faults
                getattr(self.library, step.name)(*map(ctypes.c_void_p, pointers), *more)
                self.fault |= fault.value
            elif isinstance(step, Call):
                self.call(step)
        return [self.value(out) for out in self.program.outputs]

    def call(self, step: Call) -> None:
        """Call an operator as it is."""
        result = step.target(*self.value(step.args), **self.value(step.kwargs))
        results = result if isinstance(result, list | tuple) else (result,)
        self.memory.update(
            (b, v) for b, v in zip(step.results, results, strict=True) if b is not None
        )

    def value(self, arg: Any) -> Any:
        """An argument with tensors in the place of buffers."""
        if isinstance(arg, Buffer):
            return self.tensor(arg)
        if isinstance(arg, list | tuple):
            return [self.value(item) for item in arg]
        return {k: self.value(v) for k, v in arg.items()} if isinstance(arg, dict) else arg

    def tensor(self, buffer: Buffer) -> Any:
        """The tensor that a buffer is, made when it is first asked for."""
        if buffer not in self.memory:
            self.memory[buffer] = self._new(buffer)
        return self.memory[buffer]

    def _new(self, buffer: Buffer) -> Any:
        if buffer not in self.bases:
            return torch.empty_strided(buffer.shape, buffer.strides, dtype=buffer.dtype)
        base = self.tensor(self.bases[buffer])
        offset = base.storage_offset() + buffer.offset - self.bases[buffer].offset
        return torch.as_strided(base, buffer.shape, buffer.strides, offset)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random operands in each run."""
    torch.manual_seed(0)


@pytest.fixture
def lowered(tmp_path: Path) -> Callable[..., Lowered]:
    """``lowered(fn, *args)`` compiles a function for such arguments."""
    return lambda fn, *args: Lowered(fn, args, tmp_path)


@pytest.fixture
def same(tmp_path: Path) -> Callable[..., Lowered]:
    """``same(fn, *args)`` compares with eager: values, dtypes and strides; returns what it ran."""

    def compare(fn: Callable[..., Any], *args: Any, **tolerance: Any) -> Lowered:
        made = Lowered(fn, args, tmp_path)
        want = fn(*args)
        want = want if isinstance(want, list | tuple) else [want]
        for number, (got, expected) in enumerate(zip(made(*args), want, strict=True)):
            torch.testing.assert_close(
                got,
                expected,
                equal_nan=True,
                msg=lambda m, n=number: f"result {n}: {m}",
                **tolerance,
            )
            assert got.stride() == expected.stride(), f"result {number}"
        return made

    return compare


@pytest.fixture
def own_cache(tmp_path: Path) -> Iterator[Path]:
    """A cache of the test's own."""
    with dynacap.config.patch(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"
    dynacap.reset()
    log.forget_warnings()

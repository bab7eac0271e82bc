"""The whole graph as one C function: kernels and calls in order, on one arena and torch's tensors.

Where a buffer lies is decided once, by :class:`Places`; then each step is written down.  Each
tensor that a call of torch needs or gives has a slot in ``h``, so that one loop at the end frees
what is left, whether the graph came to its end or not.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import torch

from dynacap.backends.native.c.arguments import DTYPE_CODES
from dynacap.backends.native.c.blas import product_of, routine
from dynacap.backends.native.c.calls import Function, call_text, is_foreign
from dynacap.backends.native.c.cores import uses_cores
from dynacap.backends.native.c.kernels import kernels_source
from dynacap.backends.native.c.places import Places
from dynacap.backends.native.c.sizes import checked_text, number_text, size_text
from dynacap.backends.native.c.teams import Team, in_parallel, teams
from dynacap.backends.native.loops.kernel import Kernel
from dynacap.backends.native.loops.program import (
    Buffer,
    Call,
    Number,
    Program,
    View,
    given_numbers,
    is_symbolic,
    numbers_of,
    symbols_of,
    varies,
)
from dynacap.backends.native.schedule.in_place import copies_to_itself

# Operators that name places of a storage, not of a tensor.
_PLACES_IN_STORAGE = frozenset({torch.ops.aten.as_strided_scatter.default})
_TOO_LATE = "failed = 1; /* too late for that */"
PRELUDE = Path(__file__).with_name("prelude.h").read_text()
HOST_FUNCTIONS = {
    "dynacap_python": (
        "int (*dynacap_python)(Graph *, int, int, Tensor *, int, int64_t *, int, Tensor **)"
    ),
    "dynacap_dispatch": (
        "int (*dynacap_dispatch)(const char *, const char *, int, Value *, int, Tensor **)"
    ),
    "dynacap_scratch": "char *(*dynacap_scratch)(int64_t)",
    "dynacap_release": "void (*dynacap_release)(char *)",
    "dynacap_some": "Value (*dynacap_some)(Value)",
    "dynacap_list": "Value (*dynacap_list)(int, Value *)",
    "dynacap_string": "Value (*dynacap_string)(const char *)",
    "dynacap_own": "Value (*dynacap_own)(Tensor)",
    "dynacap_blob": (
        "int (*dynacap_blob)(void *, int, const int64_t *, const int64_t *, int, Tensor *)"
    ),
    "dynacap_empty": "int (*dynacap_empty)(int, const int64_t *, const int64_t *, int, Tensor *)",
    "dynacap_share": (
        "int (*dynacap_share)(Tensor, int, const int64_t *, const int64_t *, int64_t, Tensor *)"
    ),
    "dynacap_alias": (
        "int (*dynacap_alias)(Tensor, int, const int64_t *, const int64_t *, int64_t, Tensor *)"
    ),
    "dynacap_twin": (
        "int (*dynacap_twin)(Tensor, int, const int64_t *, const int64_t *, int64_t, Tensor *)"
    ),
    "dynacap_lay": (
        "int (*dynacap_lay)(Tensor, int, const int64_t *, const int64_t *, int, Tensor *)"
    ),
    "dynacap_data": "void *(*dynacap_data)(Tensor)",
    "dynacap_size": "int64_t (*dynacap_size)(Tensor, int)",
    "dynacap_stride": "int64_t (*dynacap_stride)(Tensor, int)",
    "dynacap_same": "Tensor (*dynacap_same)(Tensor)",
    "dynacap_threads": "int (*dynacap_threads)(int)",
    "dynacap_drop": "void (*dynacap_drop)(Tensor *)",
}


# Vector functions of libtorch that kernels call: to link against it would take the linker longer
# than all else takes the compiler.
_VECTOR_FUNCTION = re.compile(r"^(\w+) (Sleef_\w+)\(([^)]*)\);$", re.MULTILINE)
_IMPORTED = r"static \1 (*\2)(\3);\n#define HAS_\2"


@dataclass(frozen=True)
class Source:
    """C text, and what Python has to know to run it."""

    text: str
    calls: tuple[Call, ...]
    constants: tuple[Buffer, ...]


def program_source(program: Program) -> Source:
    """The C source of a program, its kernels' functions among it."""
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    for run in teams(program.steps).values():
        for at in run:
            step = program.steps[at]
            if in_parallel(step):
                step.in_team = True
    return _Writer(program).source(kernels_source(kernels) if kernels else "")


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.places = Places(program)
        self.lines: list[str] = []
        self.functions: dict[str, Function] = {}
        self.calls: list[Call] = []
        self.slots: dict[object, int] = {}
        self.pointers: dict[Buffer, str] = {}
        self.read = set(_read_by_layout(program))
        self.alone = False  # whether the steps from here on use one core only

    def source(self, kernels: str) -> Source:
        self._check_finite()
        runs = teams(self.program.steps)
        together = {at for run in runs.values() for at in run}
        for index, step in enumerate(self.program.steps):
            if index in runs:
                self._team(runs[index])
            if index in together:
                continue
            self._use_cores(uses_cores(step))
            if isinstance(step, Call):
                self._call(step)
            elif isinstance(step, Kernel):
                self._kernel(step)
            self._drop(self.places.dead_after(index))
        self._outputs()
        function = "\n".join(self._function())
        names = [name for name in HOST_FUNCTIONS if f"{name}(" in function]
        before = [*self._declarations(names), _VECTOR_FUNCTION.sub(_IMPORTED, kernels)]
        after = [*self._imports(names, _VECTOR_FUNCTION.findall(kernels)), function]
        text = "\n".join([PRELUDE, *before, *after, ""])
        return Source(text, tuple(self.calls), tuple(self.places.constants))

    # What surrounds the steps.

    def _declarations(self, names: Sequence[str]) -> Iterator[str]:
        for name in names:
            yield f"static {HOST_FUNCTIONS[name]};"
        if self.functions:
            yield "typedef Tensor AtenTensorHandle;"
            yield "typedef void *AtenGeneratorHandle;"
        for imported in self.functions.values():
            yield imported.declaration()

    def _imports(self, names: Sequence[str], vectors: Sequence[Sequence[str]]) -> Iterator[str]:
        yield "const struct import imports[] = {"
        for name in (*names, *self.functions):
            yield f'    {{"{name}", &{name}}},'
        for name in dict.fromkeys(name for _, name, _ in vectors):
            yield f'#ifdef HAS_{name}\n    {{"{name}", &{name}}},\n#endif'
        yield "    {0, 0},"
        yield "};"

    def _function(self) -> Iterator[str]:
        yield "LIGHTLY_OPTIMIZED"
        yield "int run(Graph *graph, Tensor *in, const int64_t *size, Tensor *out, int64_t *number)"
        yield "{"
        yield f"    Tensor h[{len(self.slots) + 1}] = {{0}};"
        yield "    int failed = 2; /* run eagerly: nothing has been changed */"
        limits = any("dynacap_threads(" in line for line in self.lines)
        if limits:
            yield "    const int threads = dynacap_threads(0);"
        if any(isinstance(step, Kernel) and step.faults for step in self.program.steps):
            yield "    int32_t fault = 0;"
        checks = list(self._check_numbers())
        named = set(re.findall(r"\w+", "\n".join([*checks, *self.lines])))
        yield from self._symbols(named)
        for number, position in given_numbers(self.program).items():
            if isinstance(number, Number):
                yield f"    const double {number.name} = dynacap_float(size[{position}]);"
                yield f"    if (!dynacap_is_plain({number.name})) {{ return 2; }}"
        yield from checks
        if self.places.arena:
            yield f"    char *arena = dynacap_scratch({self.places.arena});"
            yield "    if (arena == 0) { goto end; }"
        yield from (f"    {line}" for line in self.lines)
        yield "    failed = 0;"
        yield "end:"
        if limits:
            yield "    dynacap_threads(threads);"
        if self.places.arena:
            yield "    if (arena != 0) { dynacap_release(arena); }"
        yield f"    for (int i = 0; i < {len(self.slots)}; i++) {{ dynacap_drop(&h[i]); }}"
        yield "    return failed;"
        yield "}"

    def _symbols(self, named: Set[str]) -> Iterator[str]:
        """The sizes that are named, each from the input that tells it."""
        origins = symbols_of(self.program)
        needed = {symbol for symbol in origins if str(symbol) in named}
        for symbol, at in reversed(origins.items()):
            if symbol in needed:
                needed |= getattr(at.plus, "free_symbols", set())
        for symbol, at in origins.items():
            if symbol in needed:
                here = (
                    f"size[{at.position}]"
                    if at.what == "integer"
                    else f"dynacap_{at.what}(in[{at.position}], {at.dim})"
                )
                if (at.times, at.plus) != (1, 0):
                    here = f"({here} - {size_text(at.plus)}) / {at.times}"
                yield f"    const int64_t {symbol} = {here};"

    def _check_numbers(self) -> Iterator[str]:
        """What Python computes with the user's own integers may be too large for C's."""
        numbers = dict.fromkeys(filter(is_symbolic, self.program.outputs))
        for call in self.calls:
            numbers.update(dict.fromkeys(filter(is_symbolic, numbers_of(call))))
        if numbers:
            yield "    dynacap_large = 0;"
            yield from (f"    (void){checked_text(number)};" for number in numbers)
            yield "    if (dynacap_large) { return 2; }"

    def _check_finite(self) -> None:
        """Look at what is to hold neither NaN nor infinities, before anything is done."""
        for buffer in self.program.finite:
            last = sum(
                (size - 1) * stride
                for size, stride in zip(buffer.shape, buffer.strides, strict=True)
            )
            function = f"dynacap_finite_f{8 * buffer.dtype.itemsize}"
            self._check(f"!{function}({self.pointer(buffer)}, {size_text(last + 1)})")

    # Where things are.

    def _slot(self, buffer: object) -> str:
        return f"h[{self.slots.setdefault(buffer, len(self.slots))}]"

    def handle(self, buffer: Buffer) -> str:
        """The tensor of a buffer as a C expression; it is made first if there is none yet."""
        given = self.places.given(buffer)
        if given is not None:
            return f"in[{given}]"
        if buffer not in self.slots:
            if buffer is self.places.root(buffer) and buffer not in self.places.offsets:
                raise KeyError(f"no step before this one fills {buffer}")
            self._make_tensor(buffer)
        return self._slot(buffer)

    def _laid_out(self, root: Buffer) -> str:
        """The tensor of a buffer that is read by its strides.  Those of an operator's result, or of
        what another graph kept, are what torch's meta kernels say, which may be wrong."""
        if self.places.given(root) is None or not self.program.continues:
            return self.handle(root)
        laid = "laid out", root
        if laid not in self.slots:
            self._check(f"dynacap_lay({self.handle(root)}, {layout(root)}, &{self._slot(laid)})")
        return self._slot(laid)

    def _from_its_start(self, buffer: Buffer) -> str:
        """The same, in a storage that starts where the buffer does, as capture took it to."""
        start = "start", buffer
        if self.places.given(buffer) is None or start in self.slots:
            return self._slot(start) if start in self.slots else self.handle(buffer)
        place = self.pointer(buffer)
        self._check(f"dynacap_blob({place}, {layout(buffer)}, &{self._slot(start)})")
        return self._slot(start)

    def _make_tensor(self, buffer: Buffer) -> None:
        """A tensor over memory that is there, which outlives the call that needs it."""
        if self.places.outlives_its_call(buffer):
            root = self.places.root(buffer)
            self._share(root, self._laid_out(root), buffer, f"&{self._slot(buffer)}")
            return
        at = self.pointer(buffer)
        if buffer.offset != 0:
            at = f"(char *){at} + {size_text(buffer.offset)} * {buffer.dtype.itemsize}"
        self._check(f"dynacap_blob({at}, {layout(buffer)}, &{self._slot(buffer)})")

    def pointer(self, buffer: Buffer) -> str:
        """Where a buffer's memory begins, as a C expression."""
        root = self.places.root(buffer)
        if root not in self.pointers:
            name = f"p{len(self.pointers)}"
            offset = self.places.offsets.get(root)
            place = (
                f"arena + {offset}"
                if offset is not None
                else f"dynacap_data({self._laid_out(root)})"
            )
            self.lines.append(f"void *{name} = {place};")
            self.pointers[root] = name
        return self.pointers[root]

    def _result(self, buffer: Buffer | None) -> str:
        return self._slot(object() if buffer is None else buffer)

    def _allocate(self, buffer: Buffer) -> None:
        """Make the tensor that a result is written into, where that is not in the arena."""
        buffer = self.places.root(buffer)
        if buffer in self.slots:
            return
        if buffer not in self.places.offsets and self.places.given(buffer) is None:
            self._check(f"dynacap_empty({layout(buffer)}, &{self._slot(buffer)})")

    # The steps.

    def _check(self, expression: str) -> None:
        self.lines.append(f"if ({expression}) {{ goto end; }}")

    def _use_cores(self, several: bool | None) -> None:
        if several is self.alone:
            self.lines.append(f"dynacap_threads({'threads' if several else '1'});")
            self.alone = not several

    def _call(self, call: Call) -> None:
        self._comment(call.origins)
        index = len(self.calls)
        self.calls.append(call)
        for result in call.results:
            if result is not None and result in self.places.before:
                self._allocate(result)
        product = product_of(call)
        if product is not None:
            name, parameters = routine(product)
            self.functions[name] = Function(name, parameters, "void")
            self.lines += list(product.lines(self.pointer))  # after the pointers that it asks for
            return
        handle = self._from_its_start if call.target in _PLACES_IN_STORAGE else self.handle
        text = call_text(call, index, handle, self._result)
        if text.function is not None:
            self.functions[text.function.name] = text.function
        # It may raise when it has written, or has run code that is not torch's.
        if (call.target._schema.is_mutable or is_foreign(call)) and not copies_to_itself(call):
            self.lines.append(_TOO_LATE)
        self._check(text.expression)
        self.lines += text.after
        for result in call.results:
            if result in self.read and result not in self.places.before:
                slot = self._slot(result)
                self._check(f"dynacap_lay({slot}, {layout(result)}, &{slot})")

    def _team(self, run: range) -> None:
        """Kernels that are run together; what only counts a change stands before them all."""
        steps = [self.program.steps[at] for at in run]
        for step in steps:
            if isinstance(step, Call):
                self._call(step)
        self._use_cores(True)
        team = Team()
        for step in steps:
            if isinstance(step, Kernel):
                text = self._kernel_call(step)
                reads, writes = (set(map(self._memory, each)) for each in (step.reads, step.writes))
                team.add(step, text, reads, writes)
        self.lines += team.lines()
        for at in run:
            self._drop(self.places.dead_after(at))

    def _memory(self, buffer: Buffer) -> Hashable:
        """What a buffer shares memory with; all of the arena counts as one."""
        root = self.places.root(buffer)
        return "arena" if root in self.places.offsets else root

    def _kernel(self, kernel: Kernel) -> None:
        self.lines.append(self._kernel_call(kernel))
        if kernel.faults:
            self._give_up_at_fault()

    def _kernel_call(self, kernel: Kernel) -> str:
        """The call of a kernel, after lines that make what it takes."""
        self._comment(kernel.origins)
        for buffer in kernel.writes:
            self._allocate(buffer)
        pointers = [self.pointer(buffer) for buffer in (*kernel.reads, *kernel.writes)]
        if any(self.places.given(buffer) is not None for buffer in kernel.writes):
            self.lines.append(_TOO_LATE)
        sizes = [size_text(size) for size in kernel.sizes]
        numbers = [number.name for number in kernel.numbers()]
        fault = ["&fault"] * kernel.faults
        return f"{kernel.name}({', '.join([*pointers, *sizes, *numbers, *fault])});"

    def _give_up_at_fault(self) -> None:
        """Have the graph run eagerly, which raises for the index; nothing must have changed yet."""
        if any(call.target._schema.is_mutable for call in self.calls):
            raise NotImplementedError("an index is checked after something was changed")
        self._check("fault")

    def _comment(self, origins: tuple[torch.fx.Node, ...]) -> None:
        for node in origins[:1]:
            trace = node.meta.get("stack_trace")
            if trace:
                line = trace.strip().splitlines()[-1].strip().replace("*/", "* /")
                self.lines.append(f"/* {line} */")

    def _drop(self, buffers: list[Buffer]) -> None:
        for buffer in buffers:
            if buffer in self.slots:
                self.lines.append(f"dynacap_drop(&{self._slot(buffer)});")

    def _outputs(self) -> None:
        for position, output in enumerate(self.program.outputs):
            if isinstance(output, Buffer):
                self._output(position, output)
            elif varies(output):
                self.lines.append(f"number[{position}] = {number_text(output)};")

    def _output(self, position: int, buffer: Buffer) -> None:
        root = self.places.root(buffer)
        if buffer is root:
            self.lines.append(f"out[{position}] = dynacap_same({self.handle(buffer)});")
        else:
            self._share(root, self.handle(root), buffer, f"&out[{position}]")

    def _share(self, root: Buffer, tensor: str, buffer: Buffer, place: str) -> None:
        """Put a view of a tensor, the root of a buffer, in a place: it keeps the memory."""
        alone = "dynacap_twin" if self._is_given_twice(root) else "dynacap_share"
        function = alone if self.places.given(root) is None else "dynacap_alias"
        offset = size_text(buffer.offset)
        self._check(f"{function}({tensor}, {geometry(buffer)}, {offset}, {place})")

    def _is_given_twice(self, root: Buffer) -> bool:
        """Whether several outputs show the same memory."""
        outputs = (each for each in self.program.outputs if isinstance(each, Buffer))
        return sum(self.places.root(each) is root for each in outputs) > 1


def _read_by_layout(program: Program) -> Iterator[Buffer]:
    """The buffers whose elements are found by their strides."""
    for step in program.steps:
        if isinstance(step, View):
            yield step.base
        elif isinstance(step, Kernel):
            yield from step.reads
        elif product_of(step) is not None:
            yield from step.buffers()


def layout(buffer: Buffer) -> str:
    """Four arguments: dimensions, sizes, strides, dtype."""
    return f"{geometry(buffer)}, {DTYPE_CODES[buffer.dtype]}"


def geometry(buffer: Buffer) -> str:
    """Three arguments: dimensions, sizes, strides."""
    sizes, strides = (
        f"(int64_t[]){{{', '.join(map(size_text, numbers)) or '0'}}}"
        for numbers in (buffer.shape, buffer.strides)
    )
    return f"{len(buffer.shape)}, {sizes}, {strides}"

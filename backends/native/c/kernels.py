"""A kernel as a C function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

import torch

from dynacap.backends.native.c.lanes import in_lanes, lane
from dynacap.backends.native.c.operations import clause, combine, operation
from dynacap.backends.native.c.prelude import RESERVED, prelude
from dynacap.backends.native.c.strips import STAGE, in_strips, width
from dynacap.backends.native.c.types import (
    COMPUTED,
    HALVES,
    STORED,
    cast,
    literal,
    loaded,
    stored,
    suffix,
)
from dynacap.backends.native.loops.expression import (
    Constant,
    Expression,
    Given,
    Load,
    Local,
    Op,
    Position,
    below,
    index_of,
    is_rounded,
    walk,
)
from dynacap.backends.native.loops.index import Axis, Index, Quotient
from dynacap.backends.native.loops.kernel import Fold, Kernel, Loop, Statement, Store
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.schedule.cost import cost_of
from dynacap.backends.native.schedule.folds import identity, total_dtype

_ON_STACK = 1 << 16  # bytes
_LONG_TEXT = 400  # characters: a truth value is not written out twice
_SHORT = 4  # a loop of fewer rounds is unrolled by the compiler and needs no vectors
_LOOPS_OWN = re.compile(
    r"(row|[ijvsdr])\d*b?|(tile|bound)\d+|lane|turn|fault"
)  # counters, values, scratch
_NAME = re.compile(r"[A-Za-z_]\w*")
_BOUNDS = {"maximum": "at_least", "minimum": "at_most"}


def kernels_source(kernels: Sequence[Kernel]) -> str:
    """The functions of all kernels, after what they need of the prelude.

    Kernels that do the same with other buffers become one function, whose name they are given: of a
    model's layers, the C compiler has one to compile.
    """
    codes: dict[str, str] = {}
    alike: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        code = kernel_source(kernel)
        key = _nameless(kernel, code)
        codes.setdefault(key, code)
        alike.setdefault(key, []).append(kernel)
    for twins in alike.values():
        for twin in twins:
            twin.name = twins[0].name
    described = ("\n".join([*_comments(alike[key]), code]) for key, code in codes.items())
    functions = "\n\n".join(described)
    return f"{prelude(functions)}\n{functions}\n"


def kernel_source(kernel: Kernel) -> str:
    """One kernel as ``static void NAME(const T *read…, T *write…, int64_t size…)``."""
    return "\n".join(_Writer(kernel).lines())


def _nameless(kernel: Kernel, code: str) -> str:
    """A kernel's text with numbers for its name and those of its parameters and memory."""
    buffers = (*kernel.reads, *kernel.writes, *kernel.scratch)
    names = [kernel.name, *map(c_name, buffers), *map(str, kernel.sizes)]
    names += [number.name for number in kernel.numbers()]
    numbers = {name: f"${at}" for at, name in enumerate(names)}
    return _NAME.sub(lambda word: numbers.get(word[0], word[0]), code)


def c_name(buffer: Buffer) -> str:
    """A buffer's name where C, the prelude and the loops have not taken it."""
    taken = buffer.name in RESERVED or _LOOPS_OWN.fullmatch(buffer.name)
    return f"{buffer.name}_" if taken else buffer.name


class _Scope:
    """A block of C: its lines so far, and the values that it has names for."""

    def __init__(self, axes: Iterable[Axis] = (), stages: bool = False) -> None:
        self.lines: list[str] = []
        self.stages: list[tuple[str, str]] | None = [] if stages else None
        self.axes = set(axes)
        self.names: dict[int, str] = {}
        self.locals: set[str] = set()


class _Writer:
    """Writes one function.

    Equal values are computed once, in the outermost block where all that they depend on is known.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.scopes = [_Scope()]
        self.fresh = count()
        self.numbers: dict[object, int] = {}
        self.number_of: dict[int, int] = {}
        self.alive: list[Expression] = []  # so that ids stay what they are
        self.depth_of: dict[int, int] = {}
        self.waiting: dict[int, float] = {}  # the cost of what a value's text computes

    def lines(self) -> Iterable[str]:
        """The function's lines."""
        kernel = self.kernel
        params = [f"const {STORED[b.dtype]} *{c_name(b)}" for b in kernel.reads]
        params += [f"{STORED[b.dtype]} *{c_name(b)}" for b in kernel.writes]
        params += [f"int64_t {size}" for size in kernel.sizes]
        params += [f"double {number.name}" for number in kernel.numbers()]
        params += ["int32_t *fault"] * kernel.faults
        yield f"static void {kernel.name}({', '.join(params)})"
        yield "{"
        alone = not any(isinstance(s, Loop) and s.parallel for s in kernel.body)
        freed = self._scratch() if alone else []
        self._statements(kernel.body)
        self.scopes[0].lines += freed
        yield from (f"    {line}" for line in self.scopes[0].lines)
        yield "}"

    def _scratch(self) -> list[str]:
        """Memory for one round: on the stack, or if it is large, which a thread's stack may not be,
        from the heap; the lines that give it back."""
        sizes = [max(1, buffer.numel) for buffer in self.kernel.scratch]
        pairs = list(zip(self.kernel.scratch, sizes, strict=True))
        large = sum(size * buffer.dtype.itemsize for buffer, size in pairs) > _ON_STACK
        for buffer, size in pairs:
            ctype, name = STORED[buffer.dtype], c_name(buffer)
            if large:
                self._line(f"{ctype} *{name} = scratch({size} * sizeof({ctype}));")
            else:
                self._line(f"{ctype} {name}[{size}] ALIGNED;")
        return [f"free({c_name(buffer)});" for buffer, _ in pairs if large]

    def _line(self, text: str) -> None:
        scope = self.scopes[-1]
        if scope.stages is None:
            scope.lines.append(text)
        else:
            scope.stages.append(("", text))

    def _statements(self, body: Sequence[Statement], around: Loop | None = None) -> None:
        stores: list[Store] = []
        for statement in body:
            if isinstance(statement, Store):
                stores.append(statement)
                continue
            self._straight(stores)
            stores = []
            self._loop(statement)
        self._straight(stores, around)

    def _straight(self, stores: Sequence[Store], around: Loop | None = None) -> None:
        """Stores, and a loop's folds, that run one after another and share what they compute."""
        folds = around.folds if around else []
        roots = [store.value for store in stores] + [fold.value for fold in folds]
        texts = self._values(roots, [store.offset for store in stores])
        for store, text in zip(stores, texts, strict=False):
            dtype = store.buffer.dtype
            target = f"{c_name(store.buffer)}[{self._index(store.offset)}]"
            if store.combiner:
                text = combine(store.combiner, loaded(target, dtype), text, dtype)
            self._line(f"{target} = {stored(text, dtype)};")
        for fold, text in zip(folds, texts[len(stores) :], strict=True):
            total = lane(_total(fold)) if around and around.lanes else _total(fold)
            self._line(f"{total} = {combine(fold.combiner, total, text, total_dtype(fold))};")

    def _loop(self, loop: Loop) -> None:
        if loop.lanes:
            self._in_lanes(loop)
            return
        if numbers := width(loop):
            self._in_strips(loop, numbers)
            return
        axes, inner = [loop.axis], loop
        while loop.parallel and _only_loop(inner):
            inner = inner.body[0]  # type: ignore[assignment]
            axes.append(inner.axis)
        for fold in loop.folds:
            self._start(fold)
        self.scopes.append(_Scope(axes))
        freed = self._scratch() if loop.parallel else []
        self._statements(inner.body, loop)
        scope = self.scopes.pop()
        scope.lines += freed
        self._pragma(loop, len(axes))
        lines = scope.lines
        for axis in reversed(axes):
            head = f"for (int64_t {axis} = 0; {axis} < {axis.size}; {axis}++)"
            lines = [f"{head} {{", *(f"    {line}" for line in lines), "}"]
        self.scopes[-1].lines += lines
        for fold in loop.folds:
            self._finish(fold)

    def _in_lanes(self, loop: Loop) -> None:
        self.scopes.append(_Scope([loop.axis]))
        self._statements(loop.body, loop)
        body = self.scopes.pop().lines
        self.scopes[-1].lines += in_lanes(loop, list(map(_total, loop.folds)), body)
        for fold in loop.folds:
            self._finish(fold)

    def _in_strips(self, loop: Loop, numbers: int) -> None:
        self.scopes.append(_Scope([loop.axis], stages=True))
        self._statements(loop.body)
        stages = self.scopes.pop().stages or []
        self.scopes[-1].lines += in_strips(loop, numbers, stages, self.kernel.in_team)

    def _pragma(self, loop: Loop, depth: int) -> None:
        words = []
        if loop.parallel:
            words.append("for" if self.kernel.in_team else "parallel for")
        if loop.vector and _long(loop):
            words.append("simd")
        if depth > 1:
            words.append(f"collapse({depth})")
        if loop.parallel and self.kernel.in_team:
            words.append("nowait")
        if not words:
            return
        if loop.vector:
            words += [clause(f.combiner, _total(f), total_dtype(f)) for f in loop.folds]
        self._line(f"#pragma omp {' '.join(words)}")

    def _start(self, fold: Fold) -> None:
        dtype = total_dtype(fold)
        start = literal(identity(fold.combiner, dtype).value, dtype)
        self._line(f"{COMPUTED[dtype]} {_total(fold)} = {start};")

    def _finish(self, fold: Fold) -> None:
        if _total(fold) != fold.result.name:
            dtype = COMPUTED[fold.result.dtype]
            self._line(f"{dtype} {fold.result.name} = ({dtype}){_total(fold)};")
        self.scopes[-1].locals.add(fold.result.name)

    def _values(self, roots: Sequence[Expression], offsets: Sequence[Index]) -> list[str]:
        """The texts of values, after lines that give names to what is used more than once."""
        positions = [Position(offset) for offset in offsets]
        order = list(walk(*roots, *positions))
        uses: dict[int, int] = {}
        outer: dict[int, int] = {}
        for node in order:
            self._enter(node)
        seen: set[int] = set()
        for node in order:
            number = self.number_of[id(node)]
            if number in seen:
                continue
            seen.add(number)
            for operand in below(node):
                below_number = self.number_of[id(operand)]
                uses[below_number] = uses.get(below_number, 0) + _weight(node, operand)
                if self.depth_of[below_number] < self.depth_of[number]:
                    outer[below_number] = 1
        for root in roots:
            number = self.number_of[id(root)]
            uses[number] = uses.get(number, 0) + 1
            if self.depth_of[number] < len(self.scopes) - 1:
                outer[number] = 1
        texts: dict[int, str] = {}
        for node in order:
            number = self.number_of[id(node)]
            if number not in texts:
                texts[number] = self._text(node, number, texts, uses.get(number, 0), outer)
        self.texts = texts
        return [texts[self.number_of[id(root)]] for root in roots]

    def _enter(self, node: Expression) -> None:
        """Give a node its number and find the block that it belongs to."""
        self.alive.append(node)
        operands = [self.number_of[id(operand)] for operand in below(node)]
        key = (type(node), node.key(tuple(operands)))
        number = self.numbers.setdefault(key, len(self.numbers))
        self.number_of[id(node)] = number
        depth = max((self.depth_of[operand] for operand in operands), default=0)
        index = index_of(node)
        for axis in index.axes() if index is not None else ():
            depth = max(depth, self._depth(axis))
        if isinstance(node, Local):
            depth = next(d for d, s in enumerate(self.scopes) if node.name in s.locals)
        elif isinstance(node, Load) and self._changes(node.buffer):
            depth = max(depth, self._row_depth())
        self.depth_of[number] = depth

    def _changes(self, buffer: Buffer) -> bool:
        """Whether the kernel itself writes what a buffer holds."""
        return buffer in self.kernel.writes or buffer in self.kernel.scratch

    def _depth(self, axis: Axis) -> int:
        return next(d for d, scope in enumerate(self.scopes) if axis in scope.axes)

    def _row_depth(self) -> int:
        return len(self.scopes) - 1

    def _text(
        self, node: Expression, number: int, texts: dict[int, str], uses: int, outer: dict[int, int]
    ) -> str:
        for scope in self.scopes:
            if number in scope.names:
                return scope.names[number]
        text = self._spelled(node, texts)
        if isinstance(node, Constant | Given | Position | Local):
            return text
        # What is overwritten is read before any store, as what runs in place takes for granted.
        overwritten = isinstance(node, Load) and node.buffer in self.kernel.writes
        scope = self.scopes[self.depth_of[number]]
        used = uses > 1 or number in outer
        if not (overwritten or self._is_kept(node, number, scope, len(text), used)):
            return text
        name = f"v{next(self.fresh)}"
        if scope.stages is None:
            scope.lines.append(f"const {COMPUTED[node.dtype]} {name} = {text};")
        else:
            scope.stages.append((f"{COMPUTED[node.dtype]} {name}", f"{name}[lane] = {text};"))
            name = f"{name}[lane]"
        scope.names[number] = name
        self.waiting[number] = 0
        return name

    def _is_kept(
        self, node: Expression, number: int, scope: _Scope, length: int, used: bool
    ) -> bool:
        """Whether a value has a name: if it is used more than once; by strips, where operations
        have come together, and if it is a truth value, whose vectors would be packed, seldom."""
        if scope.stages is None:
            return used
        before = sum(self.waiting.get(self.number_of[id(each)], 0) for each in below(node))
        self.waiting[number] = cost_of(node) + before
        if node.dtype is torch.bool:
            return length > _LONG_TEXT
        return used or self.waiting[number] >= STAGE

    def _spelled(self, node: Expression, texts: dict[int, str]) -> str:
        self.texts = texts
        if isinstance(node, Load):
            return loaded(f"{c_name(node.buffer)}[{self._index(node.offset)}]", node.dtype)
        if isinstance(node, Constant):
            return literal(node.value, node.dtype)
        if isinstance(node, Given):
            return f"({COMPUTED[node.dtype]}){node.number.name}"
        if isinstance(node, Position):
            return f"({COMPUTED[node.dtype]})({self._index(node.index)})"
        if isinstance(node, Local):
            return node.name
        assert isinstance(node, Op)
        args = [texts[self.number_of[id(arg)]] for arg in node.args]
        if node.name == "within":
            return f"within({', '.join(args)}, fault)"
        if node.name in _BOUNDS and _is_bound(node.args[0]):
            bounds = [args[1], self._bound(node.args[0], args[0])]
            return operation(_BOUNDS[node.name], bounds, node.dtype, node.dtype)
        if node.name == "div" and COMPUTED[node.dtype] == "float" and self._stays(node):
            return self._quotient(args[0], node.args[1], args[1])
        if node.name == "cast" and node.args[0].dtype in HALVES:
            if not is_rounded(node.args[0]):
                args = [cast(args[0], node.args[0].dtype, node.args[0].dtype)]
            if node.dtype is node.args[0].dtype:
                return args[0]
        return operation(node.name, args, node.dtype, node.args[-1].dtype)

    def _bound(self, number: Expression, text: str) -> str:
        """A number that loops bound others by, under a name by which GCC does not know it."""
        if COMPUTED[number.dtype] not in ("float", "double") or len(self.scopes) == 1:
            return text
        scope, key = self.scopes[0], -1 - self.number_of[id(number)]
        if key not in scope.names:
            name = scope.names[key] = f"bound{next(self.fresh)}"
            hidden = f"hidden_{suffix(number.dtype)}({text})"
            scope.lines.append(f"const {COMPUTED[number.dtype]} {name} = {hidden};")
        return scope.names[key]

    def _stays(self, quotient: Op) -> bool:
        """Whether a divisor is the same in all rounds of the loop in which it divides."""
        number, divisor = (self.number_of[id(each)] for each in (quotient, quotient.args[1]))
        known = isinstance(quotient.args[1], Constant | Given)
        return not known and self.depth_of[divisor] < self.depth_of[number]

    def _quotient(self, divided: str, divisor: Expression, text: str) -> str:
        """A quotient by what the loops around have known: by its reciprocal, taken there."""
        number = self.number_of[id(divisor)]
        scope = self.scopes[self.depth_of[number]]
        key = -1 - number
        if key not in scope.names:
            name = scope.names[key] = f"{next(self.fresh)}"
            scope.lines += [
                f"const float s{name} = lift_f32({text}), d{name} = {text} * s{name};",
                f"const float r{name} = 1 / d{name};",
            ]
        name = scope.names[key]
        return f"(quotient_f32({divided}, d{name}, r{name}) * s{name})"

    def _index(self, index: Index) -> str:
        return index.text(self._atom)

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, Axis):
            return atom.name
        if isinstance(atom, Quotient):
            return f"(({self._index(atom.dividend)}) / {atom.divisor})"
        return self.texts[self.number_of[id(atom.value)]]


def _is_bound(value: Expression) -> bool:
    """Whether a value is a number, and no NaN."""
    return isinstance(value, Constant) and value.value == value.value


def _weight(node: Expression, operand: Expression) -> int:
    """Branches of a choice get names, so that both are computed and the loop has no jumps; so does
    a choice that is computed with: GCC's parser would divide both of its branches by a number."""
    return 2 if _chooses(node) or (isinstance(node, Op) and _chooses(operand)) else 1


def _chooses(node: Expression) -> bool:
    return isinstance(node, Op) and node.name == "where"


def _only_loop(loop: Loop) -> bool:
    """Whether a loop does nothing but run another parallel one."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    return isinstance(inner, Loop) and inner.parallel and not loop.folds and not inner.vector


def _long(loop: Loop) -> bool:
    return not isinstance(loop.axis.size, int) or loop.axis.size >= _SHORT


def _total(fold: Fold) -> str:
    """The accumulator's name: the result's own, where it has the result's type."""
    return (
        f"{fold.result.name}_wide" if total_dtype(fold) != fold.result.dtype else fold.result.name
    )


def _comments(kernels: Iterable[Kernel]) -> Iterable[str]:
    """The user's lines that kernels compute."""
    seen: dict[str, None] = {}
    for node in chain.from_iterable(kernel.origins for kernel in kernels):
        trace = node.meta.get("stack_trace")
        if trace:
            seen[trace.strip().splitlines()[-1].strip()] = None
    return (f"// {line}".rstrip("\\") for line in seen)

"""``itertools``, and the methods of every kind of iterator."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

from dynacap.values import iterator_itertools as its
from dynacap.values.base import MISSING, Const, Value
from dynacap.values.container import TupleValue
from dynacap.values.data_model import as_tuple, iterate
from dynacap.values.iterator import ENDED, ConstIterator, IteratorValue
from dynacap.values.iterator_builtins import FilterIterator, StarmapIterator
from dynacap.values.iterator_outside import OutsideIterator
from dynacap.values.library.handlers import NONE, Operation, handles, index_of, is_none
from dynacap.values.library.iteration import next_
from dynacap.values.object import payload_of
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_MAKERS: dict[Any, Operation] = {
    itertools.chain: lambda t, /, *over: its.ChainIterator(iterate(t, TupleValue([*over]))),
    vars(itertools.chain)["from_iterable"]: lambda t, cls, over, /: its.ChainIterator(
        iterate(t, over)
    ),
    itertools.count: lambda t, start=Const(0), step=Const(1): its.CountIterator(
        _number(t, start), _number(t, step)
    ),
    itertools.cycle: lambda t, iterable, /: its.CycleIterator(iterate(t, iterable)),
    itertools.pairwise: lambda t, iterable, /: its.PairwiseIterator(iterate(t, iterable)),
    itertools.groupby: lambda t, iterable, key=NONE: its.GroupIterator(iterate(t, iterable), key),
    itertools.zip_longest: lambda t, /, *iterables, fillvalue=NONE: its.LongestZipIterator(
        [iterate(t, one) for one in iterables], fillvalue
    ),
    itertools.compress: lambda t, data, selectors: its.CompressIterator(
        iterate(t, data), iterate(t, selectors)
    ),
    itertools.starmap: lambda t, function, iterable, /: StarmapIterator(
        function, [iterate(t, iterable)], itertools.starmap
    ),
}
for _target, _maker in _MAKERS.items():
    handles(_target)(_maker)


def _number(t: Tracer, value: Value) -> Value:
    if all(t.lookup(value.cls, f"__{kind}__") is MISSING for kind in ("index", "float", "complex")):
        t.raise_real(error_of(itertools.count, ""))
    return value


def _register_filter(target: Any, value_type: Any) -> None:
    @handles(target)
    def filtered(t: Tracer, function: Value, iterable: Value, /) -> Value:
        made: Value = value_type(function, iterate(t, iterable), target)
        return made


_register_filter(itertools.filterfalse, FilterIterator)
_register_filter(itertools.takewhile, its.WhileIterator)
_register_filter(itertools.dropwhile, its.WhileIterator)


@handles(itertools.repeat)
def _repeat(t: Tracer, object: Value, times: Value | None = None) -> Value:
    return its.RepeatIterator(object, None if times is None else max(index_of(t, times), 0))


@handles(itertools.islice)
def _islice(t: Tracer, iterable: Value, /, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        t.graph_break("bad-arguments", "islice")
    numbers = [None if is_none(bound) else index_of(t, bound) for bound in bounds]
    cut = slice(*numbers)
    start, stop, step = cut.start or 0, cut.stop, 1 if cut.step is None else cut.step
    if start < 0 or (stop is not None and stop < 0) or step < 1:
        t.raise_real(error_of(itertools.islice, (), *numbers))
    return its.SliceIterator(iterate(t, iterable), start, stop, step)


@handles(itertools.accumulate)
def _accumulate(t: Tracer, iterable: Value, func: Value = NONE, *, initial: Value = NONE) -> Value:
    return its.AccumulateIterator(iterate(t, iterable), func, None if is_none(initial) else initial)


@handles(itertools.tee)
def _tee(t: Tracer, iterable: Value, n: Value = Const(2), /) -> Value:
    origin, seen = iterate(t, iterable), list[Value]()
    if t.lookup(origin.cls, "__copy__") is not MISSING:
        t.graph_break("unsupported-call", f"itertools.tee copies a {origin.cls.__name__}")
    if (count := index_of(t, n)) < 0:
        t.raise_real(error_of(itertools.tee, (), count))
    return TupleValue([its.TeeIterator(origin, seen) for _ in range(count)])


@handles(its.BatchedIterator.cls)
def _batched(t: Tracer, iterable: Value, n: Value) -> Value:
    if not 0 < (size := index_of(t, n)) < 1 << 63:
        t.raise_real(error_of(its.BatchedIterator.cls, (), size))
    return its.BatchedIterator(iterate(t, iterable), size)


def _computed(
    type_: Any, pools: list[list[Value]], operands: list[Value], choose: Any
) -> its.ComputedIterator:
    """All that a combinatoric iterator gives, by running it on indices."""
    return its.ComputedIterator(type_, operands, [[*chosen] for chosen in choose(*pools)])


@handles(itertools.product)
def _product(t: Tracer, /, *iterables: Value, repeat: Value = Const(1)) -> Value:
    pools = [as_tuple(t, one) for one in iterables] * index_of(t, repeat)
    operands: list[Value] = [TupleValue(pool) for pool in pools]
    return _computed(itertools.product, pools, operands, itertools.product)


def _register_choice(type_: Any) -> None:
    permutes = type_ is itertools.permutations

    def choose(t: Tracer, iterable: Value, r: Value = NONE) -> Value:
        pool = as_tuple(t, iterable)
        wrong = "Expected int as r" if permutes else ""
        size = Const(len(pool) if permutes and is_none(r) else index_of(t, r, wrong))
        if size.value < 0:
            t.raise_error(ValueError, "r must be non-negative")
        operands: list[Value] = [TupleValue(pool), size]
        return _computed(type_, [pool], operands, lambda items: type_(items, size.value))

    if not permutes:
        choose.__defaults__ = None
    handles(type_)(choose)


for _type in (
    itertools.permutations,
    itertools.combinations,
    itertools.combinations_with_replacement,
):
    _register_choice(_type)


def _declared(base: type[IteratorValue]) -> set[Any]:
    """The types whose iterators are values of these classes only."""
    found = {kind for sub in base.__subclasses__() for kind in _declared(sub)}
    return found | {vars(base).get("cls")}


# every real type whose iterators have a class here
_TYPES: set[Any] = {kind for kind in _declared(IteratorValue) if isinstance(kind, type)} | {
    map, itertools.starmap, filter, itertools.filterfalse, itertools.product,
    itertools.permutations, itertools.combinations, itertools.combinations_with_replacement,
    type(reversed(deque())), type(iter(deque())), type(iter("\xff")), type(iter(range(0))),
    type(iter(range(1 << 70))), *ENDED,
}  # fmt: skip


handles(*(kind.__iter__ for kind in _TYPES if "__iter__" in kind.__dict__))(lambda t, self, /: self)


@handles(*(kind.__next__ for kind in _TYPES if "__next__" in kind.__dict__))
def _next(t: Tracer, self: Value, /) -> Value | None:
    if not isinstance(self, IteratorValue):
        t.graph_break("outside-iterator", f"a {self.cls.__name__} made elsewhere is advanced")
    return next_(t, self)


@handles(str.__iter__, bytes.__iter__, range.__iter__)
def _const_iter(t: Tracer, self: Value, /) -> Value:
    payload = payload_of(self)
    return ConstIterator(Const(self.constant() if payload is MISSING else payload))


handles(range.__reversed__)(lambda t, self, /: ConstIterator(Const(self.constant()[::-1])))


@handles(iter([]).__class__.__length_hint__)  # type: ignore[attr-defined]
def _length_hint(t: Tracer, self: Any, /) -> Value:
    if isinstance(self, OutsideIterator):
        t.graph_break("outside-iterator", "the length of an iterator made elsewhere")
    return Const(0 if self.done else max(len(self.over.items) - self.index, 0))

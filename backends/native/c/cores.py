"""Which steps use all cores: to wake the others takes longer than a small operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from dynacap.backends.native.c.calls import is_foreign
from dynacap.backends.native.loops.kernel import Kernel, Loop, Statement
from dynacap.backends.native.loops.program import Buffer, Call, Step, touched
from dynacap.backends.native.schedule.in_place import copies_to_itself

_WORTH_CORES = 1 << 23  # additions and products: some fifty microseconds


def uses_cores(step: Step) -> bool | None:
    """Whether a step is for all cores or for this one; None where it does not matter."""
    if isinstance(step, Kernel):
        return True if any(map(_is_parallel, _loops(step.body))) else None
    if not isinstance(step, Call) or copies_to_itself(step):
        return None
    if is_foreign(step) or not all(map(_is_sized, touched(step))):
        return True
    return _work(step) >= _WORTH_CORES


def _is_sized(buffer: Buffer) -> bool:
    return isinstance(buffer.numel, int)


def _loops(body: Sequence[Statement]) -> Iterator[Loop]:
    for statement in body:
        if isinstance(statement, Loop):
            yield statement
            yield from _loops(statement.body)


def _is_parallel(loop: Loop) -> bool:
    return loop.parallel


def _work(call: Call) -> float:
    """How much there is to compute, roughly."""
    measure = _WORK.get(call.target.overloadpacket.__name__)
    if measure is not None:
        return measure(call)
    # As much as a product of square matrices, if it looks at all of them.
    return float(max((buffer.numel for buffer in touched(call)), default=0) ** 1.5)


def _of_product(call: Call) -> int:
    *_, a, b = (buffer for buffer in call.buffers() if len(buffer.shape) > 1)
    return 2 * a.numel * b.shape[-1]


def _of_convolution(call: Call) -> int:
    """Each weight meets each place of the tensor that comes in, or of the one that goes out."""
    x, weight = call.args[:2]
    return _weighed(weight, x, *filter(None, call.results))


def _of_convolution_backward(call: Call) -> int:
    gradient, x, weight = call.args[:3]
    return 2 * _weighed(weight, gradient, x)


def _weighed(weight: Buffer, *images: Buffer) -> int:
    places = max(each.shape[0] * math.prod(each.shape[2:]) for each in images)
    return 2 * places * weight.numel


def _of_attention(call: Call) -> int:
    """Queries by keys, and what comes of that by values."""
    query, key = call.args[:2]
    return int(4 * query.numel * key.shape[-2])


def _of_whole_attention(call: Call) -> int:
    """The same, after and before products with weights."""
    (query, key), width = call.args[:2], call.args[3]
    return int(8 * query.numel * width + 4 * query.numel * key.shape[-2])


_WORK: dict[str, Callable[[Call], float]] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm"), _of_product),
    "convolution": _of_convolution,
    "convolution_backward": _of_convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _of_attention,
    "_native_multi_head_attention": _of_whole_attention,
}

"""``heapq``: binary heaps in lists, with the layouts that the C functions give."""

import heapq
from typing import Any

from dynacap.values.natives import polyfill


def _max_function(name: str) -> Any:
    """What nlargest and merge use on heaps whose largest item is first; public in 3.14."""
    return vars(heapq).get(f"_{name}") or vars(heapq)[name]


def _rise(heap: list[Any], start: int, at: int) -> None:
    """Move the item at ``at`` towards ``start`` until its parent is no larger."""
    item = heap[at]
    while at > start:
        above = (at - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[at] = parent
        at = above
    heap[at] = item


def _sink(heap: list[Any], at: int) -> None:
    """Move the smaller child up until a leaf is reached; put the item there; let it rise."""
    end = len(heap)
    start = at
    item = heap[at]
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _rise(heap, start, at)


@polyfill(heapq.heappush)
def heappush(heap: list[Any], item: Any, /) -> None:
    """Add an item."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


@polyfill(heapq.heappop)
def heappop(heap: list[Any], /) -> Any:
    """Take the smallest item."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    smallest = heap[0]
    heap[0] = last
    _sink(heap, 0)
    return smallest


@polyfill(heapq.heapreplace)
def heapreplace(heap: list[Any], item: Any, /) -> Any:
    """Take the smallest item, then add one."""
    if not heap:
        raise IndexError("index out of range")
    smallest = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return smallest


@polyfill(heapq.heappushpop)
def heappushpop(heap: list[Any], item: Any, /) -> Any:
    """Add an item, then take the smallest."""
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap, 0)
    return item


@polyfill(heapq.heapify)
def heapify(heap: list[Any], /) -> None:
    """Make a list a heap."""
    for at in reversed(range(len(heap) // 2)):
        _sink(heap, at)


def _rise_max(heap: list[Any], start: int, at: int) -> None:
    """The same where the largest item is first."""
    item = heap[at]
    while at > start:
        above = (at - 1) >> 1
        parent = heap[above]
        if not parent < item:
            break
        heap[at] = parent
        at = above
    heap[at] = item


def _sink_max(heap: list[Any], at: int) -> None:
    """The same where the largest item is first."""
    end = len(heap)
    start = at
    item = heap[at]
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not heap[right] < heap[child]:
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _rise_max(heap, start, at)


@polyfill(_max_function("heapify_max"))
def heapify_max(heap: list[Any], /) -> None:
    """Make a list a heap whose largest item is first."""
    for at in reversed(range(len(heap) // 2)):
        _sink_max(heap, at)


@polyfill(_max_function("heapreplace_max"))
def heapreplace_max(heap: list[Any], item: Any, /) -> Any:
    """Take the largest item, then add one."""
    if not heap:
        raise IndexError("index out of range")
    largest = heap[0]
    heap[0] = item
    _sink_max(heap, 0)
    return largest


@polyfill(_max_function("heappop_max"))
def heappop_max(heap: list[Any], /) -> Any:
    """Take the largest item."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    largest = heap[0]
    heap[0] = last
    _sink_max(heap, 0)
    return largest

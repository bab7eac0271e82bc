"""Mutation of lists, dicts, sets, objects, globals, closures and tensors, seen from outside."""

import collections
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
total = 0
registry: dict[str, Any] = {}
history: list[Any] = []


class Box:
    """A plain object."""

    def __init__(self, value: Any = 0) -> None:
        self.value = value


@dataclass
class Record:
    """A dataclass with a default factory."""

    count: int = 0
    seen: list[Any] = field(default_factory=list)


@program((X, []))
def test_list_append(x: Tensor, out: list[Tensor]) -> Any:
    out.append(x + 1)
    out.append(x * 2)
    return out[0] + out[1]


@program((X, [1, 2, 3, 4]))
def test_list_methods(x: Tensor, items: list[int]) -> tuple[Tensor, list[int], int]:
    items.insert(0, 9)
    items.extend([7, 8])
    last = items.pop()
    items.remove(2)
    items.reverse()
    items.sort()
    del items[0]
    items[1:2] = [5, 5]
    return x * items[0], items, last + items.count(5) + items.index(5)


@program((X, [1, 2]))
def test_list_inplace_add_keeps_identity(x: Tensor, items: list[int]) -> tuple[list[int], Tensor]:
    same = items
    items += [3]
    items *= 2
    return same, x + len(items)


@program((X, [3, 1, 2]))
def test_list_clear_and_copy(x: Tensor, items: list[int]) -> tuple[list[int], list[int], Tensor]:
    kept = items.copy()
    items.clear()
    items.append(sum(kept))
    return kept, items, x + items[0]


@program((X, {"a": 1}))
def test_dict_set_and_delete(x: Tensor, table: dict[str, Any]) -> Any:
    table["b"] = x + table["a"]
    table["a"] = 5
    del table["a"]
    table["a"] = 6
    return table["b"] * len(table)


@program((X, {"a": 1, "b": 2}))
def test_dict_methods(x: Tensor, table: dict[str, Any]) -> tuple[Any, ...]:
    got = table.get("a"), table.get("z"), table.get("z", 3)
    old = table.setdefault("c", [])
    old.append(x)
    table.update(b=4, d=5)
    table.update({"e": x * 2})
    gone = table.pop("a"), table.pop("nope", None)
    last = table.popitem()
    return got, old, gone, last, list(table), list(table.values()), list(table.items())


@program((X, {"k": 1}, {"k": 2, "j": 3}))
def test_dict_merge_operators(
    x: Tensor, left: dict[str, int], right: dict[str, int]
) -> tuple[dict[str, int], dict[str, int], Tensor]:
    both = left | right
    same = left
    left |= {"z": 9}
    return both, same, x + both["k"]


@program((X, {1, 2, 3}))
def test_set_methods(x: Tensor, numbers: set[int]) -> tuple[Any, ...]:
    numbers.add(4)
    numbers.discard(1)
    numbers.update({7})
    numbers.remove(2)
    other = numbers & {3, 4, 5}
    return x * len(numbers), other, numbers | {0}, numbers - {3}, numbers ^ {4}, 3 in numbers


@program((X, Box(1)))
def test_attribute_set(x: Tensor, box: Box) -> Any:
    box.value += 1
    box.extra = x + box.value  # type: ignore[attr-defined]
    return x * box.value


@program((X, Box(1)))
def test_attribute_delete(x: Tensor, box: Box) -> tuple[Tensor, bool]:
    y = x + box.value
    del box.value
    had = hasattr(box, "value")
    box.value = 4
    return y, had


@program((X, Box(Box([1]))))
def test_nested_attribute_mutation(x: Tensor, box: Box) -> Any:
    box.value.value.append(x)
    box.value.value[0] += 1
    box.value = Box(box.value)
    return x + box.value.value.value[0]


@program((X, Record()))
def test_dataclass_fields_change(x: Tensor, record: Record) -> Any:
    record.count += 1
    record.seen.append(record.count)
    return x * record.count


@program((X,), watch=["total"])
def test_global_number_counts(x: Tensor) -> Any:
    global total
    total += 1
    return x + total


@program((X,), watch=["registry", "history"])
def test_global_containers_change(x: Tensor) -> Any:
    registry["last"] = x * 2
    history.append(len(history))
    return registry["last"] + len(history)


@scenario()
def test_nonlocal_counter() -> Scenario:
    count = 0

    def function(x: Tensor) -> Any:
        nonlocal count
        count += 1
        return x * count

    return Scenario(function, [call(X.clone())] * 4)


@scenario()
def test_closure_list_shared_by_two_functions() -> Scenario:
    log: list[Any] = []

    def note(value: Any) -> int:
        log.append(value)
        return len(log)

    def function(x: Tensor) -> Any:
        first = note("a")
        second = note(x.shape)
        return x + first * second

    return Scenario(function, [call(X.clone())] * 3)


@program((X,))
def test_closure_made_and_changed_inside(x: Tensor) -> tuple[Tensor, int]:
    n = 1

    def grow() -> int:
        nonlocal n
        n *= 3
        return n

    y = x * grow()
    return y + grow(), n


@program((X.clone(),))
def test_tensor_inplace_on_argument(x: Tensor) -> Any:
    x.add_(1)
    x[0] = 7
    x[:, 1] *= 2
    return x.sum()


@program((X.clone(),))
def test_tensor_augmented_assignment_keeps_identity(x: Tensor) -> tuple[Tensor, Tensor]:
    same = x
    x += 1
    x -= 0.5
    x *= 2
    x /= 3
    x **= 2
    return same, x


@program((X.clone(),))
def test_view_of_argument_mutated(x: Tensor) -> tuple[Tensor, Tensor]:
    row = x[0]
    row.mul_(3)
    column = x.t()
    column[2].zero_()
    return row, column


@program((X, [X + 1, X + 2]))
def test_tensors_in_list_mutated(x: Tensor, parts: list[Tensor]) -> Any:
    for part in parts:
        part.add_(x)
    parts[0], parts[1] = parts[1], parts[0]
    return parts[0] - parts[1]


@program((X,))
def test_argument_returned_as_is(x: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    return x, x.view(-1), [x]


@program((X, [X.clone()]))
def test_same_object_twice_in_result(x: Tensor, items: list[Tensor]) -> tuple[Any, ...]:
    y = x + 1
    made = [y]
    return y, y, made, made, items, items[0]


@program((X, Box([])))
def test_new_object_put_into_old(x: Tensor, box: Box) -> Box:
    fresh = Box(x + 1)
    box.value.append(fresh)
    box.value.append(fresh)
    fresh.value = fresh.value * 2
    return fresh


@program((X,))
def test_cyclic_object_returned(x: Tensor) -> Box:
    box = Box()
    box.value = [box, x + 1]
    return box


@program((X, collections.deque([1, 2], maxlen=3)))
def test_deque(x: Tensor, queue: Any) -> tuple[Any, ...]:
    queue.append(3)
    queue.appendleft(0)
    queue.append(5)
    queue.rotate(1)
    left = queue.popleft()
    return x + left, queue, list(queue), len(queue)


@program((X, collections.OrderedDict(a=1, b=2)))
def test_ordered_dict(x: Tensor, table: Any) -> tuple[Any, ...]:
    table["c"] = 3
    table.move_to_end("a")
    first = table.popitem(last=False)
    return x + table["a"], list(table.items()), first


@program((X, collections.defaultdict(list)))
def test_defaultdict(x: Tensor, table: Any) -> tuple[Any, ...]:
    table["a"].append(x)
    table["b"] += [1, 2]
    return x + len(table["b"]), sorted(table), table


@program((X, collections.Counter("abca")))
def test_counter(x: Tensor, counts: Any) -> tuple[Any, ...]:
    counts.update("aab")
    counts["z"] += 2
    return x * counts["a"], counts.most_common(2), counts["missing"]


@program((X, [[1, 2], [3]], {"t": (1, [2])}))
def test_mutation_deep_inside_arguments(x: Tensor, rows: Any, table: Any) -> Any:
    rows[1].append(4)
    rows.append(rows[0])
    table["t"][1].extend(rows[0])
    return x + len(table["t"][1])


@program(call(X, items=[1]), call(X, items=[1, 2]), call(X, items=[]))
def test_list_of_changing_length(x: Tensor, items: list[int]) -> Any:
    items.append(0)
    for item in items:
        x = x + item
    return x


@scenario()
def test_class_attribute_written() -> Scenario:
    class Counter:
        made = 0

        def __init__(self) -> None:
            Counter.made += 1
            self.number = type(self).made

    def function(x: Tensor) -> Any:
        return x + Counter().number * 10 + Counter().number

    return Scenario(function, [call(X.clone())] * 3, after=lambda i, result: Counter.made)


@scenario()
def test_object_changed_between_calls() -> Scenario:
    box = Box(1.0)

    def before(index: int) -> None:
        box.value = [1.0, 1.0, 2, "text", X.clone()][index]

    def function(x: Tensor) -> Any:
        return (x, box.value) if isinstance(box.value, str) else x * box.value

    return Scenario(function, [call(X.clone())] * 5, before=before)


@scenario()
def test_global_rebound_between_calls() -> Scenario:
    def before(index: int) -> None:
        global total
        total = [0, 0, 7, 0][index]

    def function(x: Tensor) -> Any:
        return x + total

    return Scenario(function, [call(X.clone())] * 4, before=before)


@program((X.clone(), X.clone()))
def test_swap_data_between_tensors(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    kept = x.clone()
    x.copy_(y + 1)
    y.copy_(kept)
    return y, x


@program((X.clone(),))
def test_attribute_on_tensor(x: Tensor) -> Any:
    x.tag = "seen"  # type: ignore[attr-defined]
    y = x + 1
    y.note = 3  # type: ignore[attr-defined]
    return y

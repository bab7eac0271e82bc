"""Dicts of every kind, their views, and sets."""

import collections
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


def caught(function: Any, *args: Any) -> str:
    try:
        return repr(function(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@program((X,))
def test_dict_making(x: Tensor) -> Any:
    return (
        dict(a=1, b=x),
        dict([("k", 1), ["l", 2]]),
        dict({"a": 1}, b=2),
        dict(zip("ab", (1, 2), strict=True)),
        dict.fromkeys("ab", 0),
        {**{"a": 1}, "b": 2},
        {k: v for k, v in enumerate("xy")},
        {1: "int", 1.0: "float", True: "bool"},
        {(1, "t"): x, None: 2, int: 3},
        x + 1,
    )


@program((X,))
def test_dict_methods(x: Tensor) -> Any:
    d: dict[Any, Any] = {"a": 1, "b": x}
    d.update(c=3)
    d.update([("d", 4)])
    d["a"] += 10
    got = d.get("z"), d.get("z", 5), d.setdefault("e", []), d.setdefault("a", 0)
    d["e"].append(1)
    popped = d.pop("b"), d.pop("zz", None), d.popitem()
    del d["c"]
    both = d | {"n": 1}
    both |= {"m": 2}
    return (
        d,
        got,
        popped,
        both,
        list(d),
        len(d),
        "a" in d,
        list(reversed(d)),
        d == {"a": 11, "d": 4},
        x + 1,
    )


@program((X,))
def test_dict_errors(x: Tensor) -> Any:
    d = {"a": 1}
    return (
        caught(lambda: d["b"]),
        caught(d.pop, "q"),
        caught({}.popitem),
        caught(lambda: d[[]]),  # type: ignore[index]
        caught(dict, [1]),
        caught(dict, [(1, 2, 3)]),
        caught(dict, 5),
        x + 1,
    )


@program((X,))
def test_views(x: Tensor) -> Any:
    d = {"a": 1, "b": 2, "c": 3}
    keys, values, items = d.keys(), d.values(), d.items()
    d["d"] = 4
    return (
        list(keys),
        list(values),
        list(items),
        len(keys),
        "a" in keys,
        ("b", 2) in items,
        4 in values,
        sorted(keys & {"a", "z"}),
        sorted(keys - {"a"}),
        sorted(keys | ["q"]),
        sorted(keys ^ {"a", "r"}),
        keys == {"a", "b", "c", "d"},
        keys >= {"a"},
        keys.isdisjoint("xyz"),
        list(reversed(items)),
        max(d, key=d.get),
        sum(d.values()),
        x + 1,  # type: ignore[arg-type]
    )


@program((X,))
def test_ordered_dict(x: Tensor) -> Any:
    d = collections.OrderedDict([("a", 1), ("b", x), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    e = d.copy()
    last = e.popitem()
    first = e.popitem(last=False)
    f = collections.OrderedDict(a=1)
    return (
        d,
        e,
        last,
        first,
        list(reversed(d)),
        d.pop("a"),
        f == {"a": 1},
        f == collections.OrderedDict(a=1),
        repr(f),
        x + 1,
    )


@program((X,))
def test_default_dict(x: Tensor) -> Any:
    d: Any = collections.defaultdict(list)
    d["a"].append(x)
    d["b"] += [1]
    n: Any = collections.defaultdict(int, z=3)
    for letter in "hello":
        n[letter] += 1
    return d, n, d.get("q"), "q" in d, d.default_factory is list, repr(n), n.copy(), x + 1


@program((X,), breaks=None)
def test_a_factory_that_stores_under_the_key(x: Tensor) -> Any:
    def factory() -> list[str]:
        made["key"] = ["stored"]
        return ["given"]

    made: Any = collections.defaultdict(factory)
    return made["key"], made["key"] is made["key"], made == {"key": made["key"]}, x + 1


@program((X,), breaks=None)
def test_pairs_that_fail(x: Tensor) -> Any:
    def failing() -> Iterator[str]:
        yield "key"
        raise TypeError("failing")

    found = []
    for pairs in ([failing()], [("a", 1), failing()], [3], [("a", 1), ("a",)]):
        try:
            dict(pairs)
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error), getattr(error, "__notes__", None)))
    return found, x + 1


@program((X,))
def test_counter(x: Tensor) -> Any:
    c = collections.Counter("abracadabra")
    c.update("zz")
    c.subtract(a=1)
    d = collections.Counter(a=3, b=1)
    return (
        c.most_common(3),
        c["missing"],
        d + c,
        d - c,
        d & c,
        sorted(d.elements()),
        d.total(),
        x + 1,
    )


@program((X,))
def test_chain_map(x: Tensor) -> Any:
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": x})
    m["c"] = 5
    return m["a"], m["b"], "c" in m, dict(m), len(m), x + 1


class Missing(dict[str, Any]):
    """A dict that makes up what it lacks."""

    def __missing__(self, key: str) -> str:
        return f"no {key}"


class Recorded(collections.OrderedDict[str, Any]):
    """A dict that notes how it was written."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.log: list[str] = []
        super().__init__(*args, **kwargs)

    def __setitem__(self, key: str, value: Any) -> None:
        self.log.append(key)
        super().__setitem__(key, value)


@program((X,))
def test_dict_subclasses(x: Tensor) -> Any:
    m = Missing(a=1)
    m["b"] = x
    r = Recorded(p=1)
    r.update(q=2)
    r["s"] = 3
    r.note = 7  # type: ignore[attr-defined]
    return m, m["zz"], m.get("zz"), r, r.log, r.note, x + 1  # type: ignore[attr-defined]


@program((X, Recorded(a=1), Missing(k=2)))
def test_outside_dict_subclasses(x: Tensor, r: Recorded, m: Missing) -> Any:
    r["b"] = x
    del r["a"]
    return m["k"], m["none"], r, x + len(r)


@program((X, {"a": 1, "b": 2}))
def test_outside_dict(x: Tensor, d: dict[str, Any]) -> Any:
    seen = list(d.items())
    d["a"] = d.pop("b", 9)
    d.setdefault("n", x)
    return seen, list(d), x + d["a"]


@program((X,))
def test_dict_changed_while_walked(x: Tensor) -> Any:
    d = {"a": 1}
    try:
        for _key in d:
            d["b"] = 2
    except RuntimeError as error:
        return str(error), x + 1
    return None


@program((X,))
def test_sets(x: Tensor) -> Any:
    s = {1, 2, 3}
    s.add(4)
    s.discard(1)
    s.discard(99)
    t = set(range(3, 6))
    u = s.copy()
    u |= t
    u -= {2}
    return (
        s,
        s | t,
        s & t,
        s - t,
        s ^ t,
        s <= {2, 3, 4, 5},
        s.issubset([2, 3, 4]),
        s.isdisjoint(t),
        s.union([7], (8,)),
        s.intersection([2]),
        s.difference([2]),
        s.symmetric_difference([2, 9]),
        u,
        2 in s,
        len(s),
        sorted(s),
        s == {4, 3, 2},
        frozenset([1, 2]) | {3},
        frozenset("a") in {frozenset("a")},
        caught(s.remove, 77),
        caught(set().pop),
        x + len(s),
    )


@program((X,))
def test_set_order_is_that_of_real_sets(x: Tensor) -> Any:
    s = {30, 1, 17, 8, "b", "a"}
    return list(s), list({3, 1, 2}), [n for n in {9, 1, 25}], x + 1


@program((X, {1, 2}))
def test_outside_set(x: Tensor, s: set[int]) -> Any:
    s.add(7)
    s.remove(1)
    return x + len(s), 7 in s, s


@program((X,))
def test_ordered_dicts_that_change_while_they_are_iterated(x: Tensor) -> Any:
    made = collections.OrderedDict.fromkeys("abcde")

    def move() -> None:
        for key in made:
            made.move_to_end(key)

    def add() -> None:
        for _ in made:
            made["f"] = None

    def remove() -> None:
        for _ in made:
            del made["c"]

    ended = iter(made)
    list(ended)
    return caught(move), caught(add), caught(remove), list(made), list(ended), x + 1


@program((X,), breaks=None)
def test_ordered_dicts_that_are_changed_as_plain_ones(x: Tensor) -> Any:
    changes: list[Any] = [
        lambda made: dict.__delitem__(made, "a"),
        lambda made: dict.pop(made, "a"),
        lambda made: dict.popitem(made),
        lambda made: dict.setdefault(made, "c", 3),
        lambda made: dict.update(made, c=3),
        lambda made: dict.__setitem__(made, "a", 3),
    ]
    seen = []
    for change in changes:
        made = collections.OrderedDict(a=1, b=2)
        change(made)
        seen.append((caught(repr, made), len(made), list(made)))
    return seen, x + 1


class Asked(collections.OrderedDict[Any, Any]):
    """Counts what its methods in Python are asked for."""

    asked = 0

    def __getitem__(self, key: Any) -> Any:
        self.asked += 1
        return super().__getitem__(key)

    def __delitem__(self, key: Any) -> None:
        self.asked += 1
        super().__delitem__(key)


@program((X,))
def test_pop_of_an_ordered_dict_asks_no_subclass(x: Tensor) -> Any:
    made = Asked(a=1)
    return made.pop("a"), made.pop("b", 5), made.asked, caught(made.pop, []), x + 1


@program((X,))
def test_dicts_whose_keys_change_while_they_are_iterated(x: Tensor) -> Any:
    def same() -> None:
        made = {0: 0}
        for key in made:
            del made[key]
            made[key] = 0

    def walk(over: Any, made: dict[int, int], old: int, new: int) -> list[Any]:
        seen = []
        for each in over:
            seen.append(each)
            if old in made:
                del made[old]
                made[new] = new
        return seen

    a, b, c = ({0: 0, 1: 1, 2: 2} for _ in range(3))
    found = walk(a, a, 1, 7), caught(walk, b.values(), b, 0, 8), walk(reversed(c), c, 1, 7)
    return caught(same), found, a, b, c, x + 1


@program((X,), breaks=None)
def test_a_dict_that_changed_under_an_iterator_that_leaves(x: Tensor) -> Any:
    made, seen = {0: 0, 1: 1, 2: 2}, []
    for each in made.values():
        seen.append(each)
        made.pop(each, None)
        made[8] = 8
    return seen, x + 1


OUTSIDE = {1: 2, 3: 4}
VIEWS = OUTSIDE.keys(), OUTSIDE.values(), OUTSIDE.items()


@program((X,))
def test_views_from_outside(x: Tensor) -> Any:
    keys, values, items = VIEWS
    sets = keys | {5}, keys == {1, 3}, items & {(1, 2)}
    return [*keys], [*values], [*items], len(keys), 1 in keys, [*reversed(values)], sets, x + 1


@program((X,), breaks=1)
def test_a_view_across_a_break(x: Tensor) -> Any:
    made = collections.OrderedDict(a=1)
    items = made.items()
    dynacap.graph_break()
    made["b"] = 2
    return [*items], x + 1


class Unsteady:
    """Its hash is another each time."""

    asked = 0

    def __hash__(self) -> int:
        Unsteady.asked += 1
        return Unsteady.asked


@program((X,), breaks=None)
def test_an_ordered_dict_of_keys_whose_hashes_change(x: Tensor) -> Any:
    made = collections.OrderedDict()
    for index in range(3):
        made[Unsteady()] = index
    return len(made), caught(lambda: list(made.values()))[:8], x + 1


@program((X,), breaks=None)
def test_keys_that_take_the_place_of_others_while_a_dict_is_walked(x: Tensor) -> Any:
    d = dict.fromkeys(range(3))
    back, there = reversed(d.keys()), iter(d.items())
    d.popitem()
    d[10] = None
    found = [next(back), next(back)]
    d.clear()
    d.update(dict.fromkeys(range(2)))
    errors = [caught(next, back), caught(list, there), caught(list, there)]
    d[5] = None
    ordered = collections.OrderedDict.fromkeys(range(4))
    walk = iter(ordered)
    found.append(next(walk))
    ordered.clear()
    return found, errors, caught(list, back), caught(next, walk), caught(next, walk), x + 1


@program((X,))
def test_an_iterator_that_met_a_change_tells_of_it_again(x: Tensor) -> Any:
    d, s = {1: 1, 2: 2}, {1, 2}
    walks: list[Iterator[Any]] = [iter(d), iter(s)]
    d[3] = 3
    s.add(3)
    found = [caught(next, walk) for walk in walks]
    d.pop(3)
    s.discard(3)
    return found, [caught(next, walk) for walk in walks], [caught(list, walk) for walk in walks], x


class Letters(set[str]):
    """A set whose class is the program's."""


@program((X, Letters("gallahad"), set("breakfast")), breaks=None)
def test_the_order_of_a_set_from_outside(x: Tensor, letters: Letters, word: set[str]) -> Any:
    before = [*letters], str(letters), [*letters | {"z"}]
    word.add("x")
    return before, [*word], [*word.copy()], [*word | {"y", "q"}], x + 1

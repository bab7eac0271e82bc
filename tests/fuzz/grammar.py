"""What the generated programs are made of: texts with holes, by the kind of thing they make.

A hole `{int}` is filled by one of `EXPRESSIONS["int"]`, and so on; `{n}` by a small number. The
names that programs use are always those of `START`, so that any statement may stand anywhere; what
then still goes wrong raises, and an exception is as good a result as any.
"""

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "int": (
        "{n}",
        "i",
        "j",
        "K",
        "o.n",
        "len(a)",
        "len(d)",
        "{int} + {int}",
        "{int} * {n}",
        "{int} % 3",
        "{int} // 2",
        "-{int}",
        "{int} & 3",
        "{int} - {int}",
        "~{int}",
        "{int} ** 2 % 5",
        "abs({int})",
        "divmod({int}, 3)[1]",
        "len({list})",
        "x.shape[{n}]",
        "x.dim()",
        "x.numel()",
        "y.size(-1)",
        "x.stride(0)",
        "int({bool})",
        "({int} if {bool} else {int})",
        "max({int}, {int})",
        "min([{int}, {int}])",
        "sum(v for v in {list} if isinstance(v, int))",
        "next(iter({list}), {int})",
        "(i := {int})",
        "d.get({key}, {int})",
        "getattr(o, 'n', {int})",
        "o.double",
        "{list}.count({int})",
        "(lambda i, k={int}: i + k)({int})",
        "{obj}.n",
        "o()",
        "{call}",
        "hash({int})",
        "len({str})",
        "ord({str}[0])",
        "o + {int}",
        "{int} + o",
        "o[{int}]",
        "len(o)",
        "int({str}) if {str}.isdigit() else {n}",
        "next(it, {int})",
        "round({int} / 3)",
        "int(x.dtype is torch.float32)",
        "K if {bool} else j",
        "T['k']",
        "(next(e) if (e := enumerate({list})) and a else (0, 1))[0]",
        "functools.reduce(lambda p, q: p + 1, {list}, {int})",
        "operator.index({int})",
        "len([*{list}, *{list}])",
        "len({{**d, 'z': 1}})",
        "bool({list})",
        "C0.count",
    ),
    "bool": (
        "True",
        "False",
        "{int} > {n}",
        "{int} == {int}",
        "not {bool}",
        "{int} < {int} < 3",
        "{bool} and {bool}",
        "{bool} or {bool}",
        "{int} in {list}",
        "{key} in d",
        "a is b",
        "a == b",
        "{list} == {list}",
        "isinstance({any}, int)",
        "isinstance(o, C0)",
        "o == p",
        "o is p",
        "x is y",
        "x.requires_grad",
        "any(v for v in {list})",
        "all({list})",
        "bool(o)",
        "callable({any})",
        "hasattr(o, 'extra')",
        "{any} is None",
        "o < p",
        "{str} < {str}",
        "torch.is_grad_enabled()",
        "x.shape == y.shape",
        "{int} in o",
        "type({any}) is type({any})",
        "issubclass(type(o), C0)",
        "'k' in vars(o)",
        "x.sum() > {n}",
        "bool((x > {n}).any())",
        "x.is_contiguous()",
        "o in [p]",
        "a",
    ),
    "tensor": (
        "x",
        "y",
        "W",
        "o.w",
        "x + {int}",
        "{tensor} * 2",
        "{tensor} + {tensor}",
        "-{tensor}",
        "torch.relu({tensor})",
        "{tensor}.clone()",
        "{tensor}.detach()",
        "{tensor} - {int}",
        "{tensor}.t().t()",
        "{tensor}.reshape(-1).reshape(2, 3)",
        "{tensor}.sum() + {tensor}",
        "torch.zeros_like({tensor})",
        "torch.where({tensor} > {n}, {tensor}, {tensor})",
        "torch.stack([{tensor}, {tensor}])[{n} % 2]",
        "{tensor}.view(3, 2).view(2, 3)",
        "{tensor}[:]",
        "torch.cat([{tensor}[:1], {tensor}[1:]])",
        "{tensor}.expand(2, 3)",
        "({tensor} if {bool} else {tensor})",
        "tf({tensor})",
        "tf({tensor}, {int})",
        "{tensor}.float()",
        "o.scale({tensor})",
        "{tensor} @ torch.ones(3, 3)",
        "lin({tensor})",
        "torch.rand(2, 3)",
        "sum([{tensor}, {tensor}])",
        "max([{tensor}], key=id)",
        "{tensor}.softmax(-1)",
        "F.dropout({tensor}, 0.5, training={bool})",
        "{tensor}.mul(3)",
        "torch.ones(2, 3, dtype={tensor}.dtype)",
        "{tensor} ** 2",
        "{tensor} / 2",
        "o @ {tensor}",
        "(y := {tensor})",
        "functools.partial(torch.add, {tensor})({tensor})",
        "{int} - {tensor}",
        "{tensor}.masked_fill({tensor} > 1, {int})",
        "d.setdefault('t', {tensor})",
        "torch.tensor([[{int}, 1, 2], [3, {int}, 5.0]])",
        "list({tensor})[0] + {tensor}",
        "{tensor}[[0, 1]]",
        "{tensor}[..., [2, 1, 0]]",
        "{tensor}.contiguous()",
        "cached({tensor})",
        "{tensor}.mean(0, keepdim=True) + {tensor}",
        "torch.empty(2, 3).copy_({tensor})",
    ),
    "list": (
        "a",
        "b",
        "o.items",
        "[]",
        "[{int}]",
        "[{any}, {any}]",
        "a + b",
        "a[{n}:]",
        "list(d)",
        "[v for v in {list}]",
        "[v for v in {list} if v != {int}]",
        "list(range({int} % 4))",
        "[w for v in ({list}, {list}) for w in v][:5]",
        "sorted({list}, key=str)",
        "a[::-1]",
        "[i + v for v in range({n})]",
        "list(gen({int} % 4))",
        "list(map(str, {list}))",
        "[*{list}, {any}][:6]",
        "list(d.values())",
        "[x for x in {list}]",
        "list(o)",
        "list(zip({list}, 'ab'))",
        "list(filter(None, {list}))",
        "{list}.copy()",
        "list(itertools.chain({list}, {list}))[:6]",
        "[(lambda: v)() for v in {list}]",
        "list(enumerate({list}))",
        "list({list} for _ in range({n}))",
        "G",
        "T['l']",
        "[i for i in gen({n})]",
        "list(reversed({list}))",
        "list(dict.fromkeys(map(str, {list})))",
        "list(itertools.islice(it, {n}))",
        "sorted({{1, {int}, 7}})",
        "(a or b)",
    ),
    "key": ("'k'", "{int}", "{str}", "(i, 'z')", "None", "True", "i"),
    "str": (
        "s",
        "'ab'",
        "str({int})",
        "f'{{{int}:>3}}'",
        "{str} + {str}",
        "{str}.upper()",
        "repr({int})",
        "','.join(map(str, [{int}, {int}]))",
        "{str}[{n}:]",
        "type({any}).__name__",
        "f'{{s!r}}{{i}}'",
        "{str}.replace('a', {str})",
        "'%s-%d' % ({str}, {int})",
        "o.name",
        "'{{}}:{{k}}'.format({int}, k={str})",
        "str({bool})",
        "{str} * ({n} % 3)",
        "o.__class__.__name__",
        "str(x.shape)",
        "str({list}) if not {list} else 'full'",
        "{str}.strip('a')",
    ),
    "obj": ("o", "p", "C0({int})", "C1({int})", "o.other", "copy.copy(o)", "(o if {bool} else p)"),
    "call": (
        "f0({int})",
        "f1({int}, {any})",
        "f1(*[{int}, {any}])",
        "f2({int}, k={int})",
        "f2(**{{'i': {int}, 'k': {any}}})",
        "f2({int}, {any}, {any}, z={any})",
        "o.method({int})",
        "C0.method(o, {int})",
        "C1.make({int}).n",
        "o.static({int})",
        "fp({int})",
        "rec({int} % 4)",
        "(o.method if {bool} else f0)({int})",
        "super(C1, p).method({int})",
        "bound({int})",
        "counter()",
        "box_fn['f']({int})",
        "max([{int}, 2], key=f0)",
        "fail({int} % 5)",
        "list(map(f0, [{int}, {int}]))[0]",
        "deco({int})",
        "single({any})",
    ),
    "any": (
        "{int}",
        "{bool}",
        "{tensor}",
        "{list}",
        "{str}",
        "{obj}",
        "None",
        "({int}, {any})",
        "{{'k': {any}}}",
        "{{{int}, 2}}",
        "d",
        "f0",
        "C0",
        "lambda v={any}: v",
        "x.shape",
        "1.5",
        "{call}",
        "gen({n})",
        "iter({list})",
        "o.method",
        "range({int} % 5)",
        "...",
        "slice({int})",
        "frozenset([{int}])",
        "ValueError({any})",
        "{list}[-1:]",
        "(v for v in {list})",
        "torch.sin",
    ),
    "error": (
        "ValueError({int})",
        "KeyError({str})",
        "Oops({any}, {int})",
        "TypeError",
        "IndexError()",
        "StopIteration({int})",
        "Quiet({str})",
    ),
    "exceptions": (
        "ValueError",
        "Exception",
        "(KeyError, IndexError)",
        "Oops",
        "LookupError",
        "(TypeError, AttributeError)",
        "ArithmeticError",
        "Quiet",
        "RuntimeError",
    ),
    "manager": (
        "torch.no_grad()",
        "Guard('g', {bool})",
        "Guard({str}, True)",
        "contextlib.suppress(KeyError)",
        "torch.enable_grad()",
        "managed({int})",
        "contextlib.nullcontext({any}) as o",
        "Guard('h', False) as p",
        "contextlib.ExitStack() as p",
        "Guard('a', False), managed({int})",
        "contextlib.suppress(Oops, TypeError, ValueError)",
        "torch.set_grad_enabled({bool})",
        "torch.autocast('cpu', dtype=torch.bfloat16, enabled={bool})",
    ),
    "iterable": (
        "range({n})",
        "list({list})[:4]",
        "gen({n})",
        "enumerate({list}[:3])",
        "zip('abc', {list})",
        "list(d)[:3]",
        "o",
        "[1, {int}, 2]",
        "reversed([1, 2])",
        "(v + 1 for v in gen({n}))",
        "'ab'",
        "itertools.islice(it, 2)",
        "x",
        "map(f0, [1, 2])",
        "sorted(set(map(str, {list})))[:3]",
        "itertools.product('ab', repeat=2)",
        "iter([{any}, {any}])",
        "dict(d).items()",
    ),
    "pattern": (
        "{n}",
        "int(v)",
        "str()",
        "[v, *_]",
        "[]",
        "{{'k': v}}",
        "C0(n=v)",
        "(1 | 2) as v",
        "None",
        "[int(v), _]",
        "C1()",
        "{{'k': [v, *_], **rest}}",
        "bool()",
        "tuple(v)",
    ),
}

STATEMENTS: tuple[str, ...] = (
    "pass",
    "i = {int}",
    "x = {tensor}",
    "y = {tensor}",
    "a = ({list})[:6]",
    "a = o.items",
    "b = a = G",
    "s = ({str})[:20]",
    "o = {obj}",
    "j += {int}",
    "x += {int}",
    "x = x + {tensor}",
    "a.append({any})",
    "d[{key}] = {any}",
    "o.n = {int}",
    "note({any})",
    "i, j = j, {int}",
    "a, b = b, ({list})[:6]",
    "i, *a = [{int}, *{list}][:6]",
    "(i, j), s = ({int}, {int}), ({str})[:20]",
    "x.add_({int})",
    "x.mul_({tensor})",
    "x[{n} % 2] = {int}",
    "x[0].add_({int})",
    "x[:, {n} % 3] = {int}",
    "y = x[{n} % 2]; y = x",
    "y = x.view(-1); y[{n}] = {int}; y = {tensor}",
    "x.t().mul_(2)",
    "x.zero_(); y = x + {int}",
    "torch.add(x, {int}, out=y)",
    "x = x.detach()",
    "x.requires_grad_({bool})",
    "o.w = {tensor}",
    "o.w += 1",
    "W.add_({int})",
    "a[{int}:] = ({list})[:3]",
    "a[{n}] = {any}",
    "a[0] += {int}",
    "del a[{n}]",
    "del a[{n}:]",
    "a.insert({int}, {any})",
    "a.extend(({list})[:3])",
    "a.pop()",
    "a.sort(key=str)",
    "a.reverse(); b = a",
    "a = b",
    "a += [{any}]",
    "a *= {n} % 3; del a[6:]",
    "a.clear()",
    "a.remove({int})",
    "d.update(k={any})",
    "d.pop({key}, None)",
    "del d[{key}]",
    "d['l'] = a; d['m'] = a",
    "d.setdefault('l', []).append({any})",
    "d |= {{'q': {int}}}",
    "d = dict(d)",
    "d.clear()",
    "d.popitem()",
    "o.extra = {any}",
    "del o.extra",
    "o.items.append({int})",
    "o.double = {int}",
    "o.other, p.other = p, o",
    "p = o",
    "o, p = p, o",
    "o += {int}",
    "o[{int}] = {any}",
    "del o[{int}]",
    "o.__dict__['n'] = {int}",
    "setattr(o, {str}, {any})",
    "C0.count += 1",
    "type(o).count = {int}",
    "C1.fresh = {any}",
    "T['k'] = {int}",
    "T['l'].append({int})",
    "G.append({int})",
    "K = {int}",
    "counter()",
    "print({int}, {str})",
    "print({list})",
    "look({any})",
    "look()",
    "note(look({int}))",
    "note(x.tolist())",
    "i = int(x.sum()) % 5",
    "note(float(x[0, 0]))",
    "note(str({any})[:20] if not callable({any}) else 0)",
    "random.seed({n}); i = random.randint(0, 5)",
    "note(random.random())",
    "torch.manual_seed({n})",
    "note({call})",
    "{call}",
    "note({bool})",
    "note(({any}, {any}))",
    "assert {bool}, {any}",
    "note(next(it, None))",
    "it = iter({list})",
    "it = gen({n})",
    "q = gen({n}); note(next(q, 0)); q.close()",
    "q = talk({int}); next(q); note(q.send({any})); del q",
    "q = talk({int}); next(q); note(q.throw({error}))",
    "note([*talk({int})][:2])",
    "note(sorted(locals())[:3])",
    "note({{**d, 'n': {any}}})",
    "note([v for v in gen({n}) if v or note(v)])",
    "note(eval('i + 1'))",
    "x.sum().backward()",
    "note(x.grad)",
    "with torch.no_grad(): x = x * 2",
    "lin.weight.data.mul_({n})",
    "lin.zero_grad()",
    "note(lin.weight.requires_grad)",
    "lin.k = {any}",
    "o.note = note",
    "fp = functools.partial(f1, {int})",
    "bound = {obj}.method",
    "box_fn['f'] = f0 if {bool} else f1",
    "box_fn['f'] = lambda v, k={any}: v",
    "global_box.value = {any}",
    "note(global_box.value is {any})",
    "note(a is b or a == b)",
    "note(isinstance(o, {exceptions}))",
    "f0.__defaults__ = ({int},)",
    "note(sys.exc_info()[0])",
    "var.set({int}); note(var.get())",
    "note(copy.deepcopy({list}))",
    "note({tensor}.shape)",
    "note({tensor}.dtype)",
    "[note(v) for v in {list}[:2]]",
    "queue.append({any}); note(queue.popleft())",
    "falls[{str}].append({any})",
    "tally.update({str}); note(tally['a'])",
    "group.add({int}); note(sorted(group, key=str))",
    "group.discard({int})",
    "group |= {{{int}, {int}}}",
    "note(a[-1] if a else {any})",
    "i = o = p = {int}; o = p = C0(i)",
    "x = y = {tensor}",
    "x, y = y, x",
)
JUMPS: tuple[str, ...] = (
    "raise {error}",
    "if {bool}: raise {error}",
    "if {bool}: return {any}",
    "raise {error} from {error}",
    "if {bool}: raise",
    "return {any}",
)
LOOP_JUMPS: tuple[str, ...] = ("if {bool}: break", "if {bool}: continue", "break")

# Methods of the classes, of which each program takes some.
METHODS: tuple[str, ...] = (
    "def __len__(self): return {n}",
    "def __bool__(self): return {bool}",
    "def __eq__(self, other): return isinstance(other, C0) and self.n == other.n",
    "def __eq__(self, other): return NotImplemented",
    "def __hash__(self): return hash(self.n)",
    "def __lt__(self, other): note('lt'); return self.n < other.n",
    "def __add__(self, other): return self.n + {int}",
    "def __radd__(self, other):\n    if isinstance(other, int): return other + self.n\n"
    "    return NotImplemented",
    "def __iadd__(self, other): self.n += other; return self",
    "def __matmul__(self, other): return other * self.n",
    "def __rsub__(self, other): return {n}",
    "def __neg__(self): return self.n",
    "def __call__(self, v=1): note('called'); return {int}",
    "def __getitem__(self, at): return self.items[at]",
    "def __getitem__(self, at):\n    if at > 2: raise IndexError(at)\n    return at",
    "def __setitem__(self, at, value): self.items[at:at] = [value]",
    "def __delitem__(self, at): note(('del', at)); del self.items[at]",
    "def __contains__(self, v): return v == self.n",
    "def __iter__(self): return iter([1, self.n])",
    "def __iter__(self):\n    yield self.n\n    yield {int}",
    "def __getattr__(self, name):\n    if name.startswith('__'): raise AttributeError(name)\n"
    "    return {n}",
    "def __getattr__(self, name): raise AttributeError(f'no {{name}}')",
    "def __getattribute__(self, name):\n    if name == 'n': note('n')\n"
    "    return super().__getattribute__(name)",
    "def __setattr__(self, name, value):\n    if name == 'extra': note(name)\n"
    "    super().__setattr__(name, value)",
    "def __delattr__(self, name): note(('gone', name)); object.__delattr__(self, name)",
    "def __str__(self): return {str}",
    "def __repr__(self): return f'<{{type(self).__name__}} {{self.n}}>'",
    "def __format__(self, spec): return spec + 'f'",
    "def __int__(self): return self.n",
    "def __index__(self): return 1",
    "def __enter__(self): note('enter'); return self",
    "def __exit__(self, *error): note(error[0]); return {bool}",
    "def __init_subclass__(cls, **kw): super().__init_subclass__(**kw); cls.marked = True",
    "def __class_getitem__(cls, item): return (cls.__name__, item)",
    "def __reversed__(self): return iter([{int}])",
    "def __copy__(self): return type(self)(self.n + 1)",
    "def method(self, v=1): self.n += 1; return v + {int}",
    "def method(self, v=1): return super().method(v) if hasattr(super(), 'method') else self.n",
    "def method(self, v, *rest): note(rest); return v",
    "def scale(self, t): return t * self.n",
    "def scale(self, t): t.add_(self.n); return t",
    "@property\ndef name(self): note('name'); return {str}",
    "@functools.cached_property\ndef name(self): note('once'); return {str}",
    "@classmethod\ndef make(cls, n): return cls(n)",
    "@staticmethod\ndef static(v): return v + {int}",
    "__slots__ = ('slot',)",
    "level = {int}",
    "field = Field()",
)

START = """
import collections, contextlib, contextvars, copy, dataclasses, functools, itertools, operator
import random, sys, types

import torch
import torch.nn.functional as F

notes, K, G, T = [], 2, [1, 2], {"k": 1, "l": [3]}
W = torch.ones(2, 3)
torch.manual_seed(0)
lin = torch.nn.Linear(3, 3)
var = contextvars.ContextVar("var", default=0)
global_box = types.SimpleNamespace(value=None)
queue, falls = collections.deque([1], maxlen=3), collections.defaultdict(list)
tally, group = collections.Counter("a"), {1, 2}

class Oops(Exception):
    pass

class Quiet(LookupError):
    def __init__(self, text="quiet"):
        super().__init__(text)
        self.text = text

class Field:
    def __get__(self, obj, owner):
        return self if obj is None else vars(obj).get("_field", 0)
    def __set__(self, obj, value):
        note(("field", value))
        vars(obj)["_field"] = value

class Guard:
    def __init__(self, name, swallow):
        self.name, self.swallow = name, swallow
    def __enter__(self):
        note(("in", self.name))
        return self
    def __exit__(self, kind, value, trace):
        note(("out", self.name, kind))
        return self.swallow
    n, items, w, other, name = 0, [], W, None, "guard"

def note(value=None):
    notes.append(value)
    return value

def fail(kind):
    if kind == 0:
        return 0
    if kind == 1:
        return {}["missing"]
    if kind == 2:
        return [][1]
    if kind == 3:
        raise Oops("failed", kind)
    return None + kind

def rec(n):
    return n if n <= 0 else rec(n - 1) + 1

def make_counter():
    count = 0
    def counter():
        nonlocal count
        count += 1
        return count
    return counter

def decorate(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        note("before")
        try:
            return function(*args, **kwargs)
        finally:
            note("after")
    return wrapper

@functools.lru_cache(maxsize=4)
def cached(t):
    return t + 1

@functools.singledispatch
def single(value):
    return 0

@single.register
def _(value: int):
    return value + 1

@single.register(list)
def _(value):
    return len(value)

@contextlib.contextmanager
def managed(n):
    note("managed")
    try:
        yield n
    except ValueError:
        note("mended")
    finally:
        note("left")

def talk(got):
    try:
        while True:
            got = yield got
            if got is None:
                return "over"
    except (ValueError, KeyError) as error:
        yield type(error).__name__
    finally:
        note("talked")

counter = make_counter()
i, j, s, a, b, d = 1, 2, "s", [1, 2], [3], {"k": 1}
x = y = torch.ones(2, 3)
it = iter([5, 6, 7])

class Base:
    count, other, n = 0, None, 0
    name = "base"
    def __init__(self, n=0):
        self.n, self.items = n, [n]
        self.w = torch.ones(2, 3) * 2
        type(self).count += 0
    @property
    def double(self):
        return self.n * 2
    @double.setter
    def double(self, value):
        self.n = value // 2
    def method(self, v=1):
        return v
    def scale(self, t):
        return t * 2
    @classmethod
    def make(cls, n):
        return cls(n)
    @staticmethod
    def static(v):
        return v
    def __int__(self):
        return self.n
"""

"""What stands before every generated program: the names that it uses, and a base class."""

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

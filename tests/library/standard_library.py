"""The standard library as models use it: rows of expressions for each module.

A row is captured whole, unless the name of its group in `MAY_BREAK` says what stops capture there:
it touches the outside, or looks at what runs.
"""

# ruff: noqa: E501

PRELUDE = '''
import abc, collections, contextlib, copy, dataclasses, enum, functools, inspect, itertools
import logging, math, operator, os, random, re, string, time, types, typing, warnings, weakref
import attrs
import torch
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
LOG = []

def scale(x, by=2, *rest, plus=0):
    """Scales."""
    return x * by + plus + len(rest)

def note(value):
    LOG.append(value)
    return value

@functools.lru_cache(maxsize=None)
def squared(n):
    return n * n

@functools.cache
def cubed(n):
    return n ** 3

@functools.singledispatch
def kind(value):
    return "object"

@kind.register
def _(value: int):
    return "int"

@kind.register(list)
def _(value):
    return "list"

def wrapping(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner

@functools.total_ordering
class Version:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return self.n == other.n
    def __lt__(self, other): return self.n < other.n

class Model:
    def __init__(self, width): self.width = width
    @functools.cached_property
    def area(self): return note(self.width ** 2)
    @functools.singledispatchmethod
    def take(self, value): return "any"
    @take.register
    def _(self, value: str): return "text"
    half = functools.partialmethod(lambda self, by: self.width / by, 2)

@contextlib.contextmanager
def managed(name):
    LOG.append(("in", name))
    try:
        yield name
    except ValueError as error:
        LOG.append(str(error))
    finally:
        LOG.append(("out", name))

class Closes:
    def close(self): LOG.append("closed")

class Doubles(contextlib.ContextDecorator):
    def __enter__(self): LOG.append("enter"); return self
    def __exit__(self, *error): LOG.append("exit"); return False

@dataclass
class Point:
    x: int
    y: int = 2
    tags: list = field(default_factory=list)

@dataclass(frozen=True)
class Frozen:
    a: int
    b: str = "b"

@dataclass(slots=True, order=True)
class Slotted:
    rank: int
    name: str = field(default="n", compare=False)

@dataclass(kw_only=True)
class Named:
    width: int
    area: int = field(init=False)
    scale: dataclasses.InitVar[int] = 1
    def __post_init__(self, scale): self.area = self.width ** 2 * scale

@dataclass
class Child(Point):
    z: int = 9
    hidden: int = field(default=1, repr=False, metadata={"k": 1})

@dataclass
class Holds:
    inner: Point
    many: dict

class Color(enum.Enum):
    RED = 1
    GREEN = 2
    ROUGE = 1
    @property
    def lower(self): return self.name.lower()

class Number(enum.IntEnum):
    ONE = 1
    TWO = 2

class Mode(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    RW = R | W

class Word(str, enum.Enum):
    A = "a"

class Pair(NamedTuple):
    left: int
    right: str = "r"
    def both(self): return f"{self.left}{self.right}"

Plain = collections.namedtuple("Plain", "p q", defaults=[5])

class Box(Generic[T]):
    def __init__(self, item): self.item = item
    def get(self): return self.item

@runtime_checkable
class HasLen(Protocol):
    def __len__(self): ...

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    @property
    @abc.abstractmethod
    def name(self): ...

class Square(Shape):
    def area(self): return 4
    @property
    def name(self): return "square"

class Sized(collections.abc.Sequence):
    def __getitem__(self, i): return (5, 6, 7)[i]
    def __len__(self): return 3

class Mapped(collections.abc.MutableMapping):
    def __init__(self): self.d = {}
    def __getitem__(self, k): return self.d[k]
    def __setitem__(self, k, v): self.d[k] = v
    def __delitem__(self, k): del self.d[k]
    def __iter__(self): return iter(self.d)
    def __len__(self): return len(self.d)

@attrs.define
class Slim:
    a: int
    b: list = attrs.field(factory=list)
    c: int = attrs.field(default=3, converter=int)
    @c.validator
    def _check(self, attribute, value):
        if value < 0: raise ValueError("negative")

@attrs.frozen
class Iced:
    a: int
    b: str = "b"

@attrs.define(kw_only=True, order=True)
class Worded:
    width: int
    area: int = attrs.field(init=False)
    def __attrs_post_init__(self): self.area = self.width ** 2

class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})

WORD = re.compile(r"(?P<first>[a-z]+)-(\\\\d+)")
QUIET = logging.getLogger("dynacap_test.quiet")
QUIET.setLevel(logging.ERROR)
KEPT = Point(1)
REF = weakref.ref(KEPT)
VALUES = weakref.WeakValueDictionary(kept=KEPT)
'''

ROWS: dict[str, list[str]] = {
    "math": [
        "math.sqrt(2), math.hypot(3, 4), math.floor(2.5), math.ceil(2.1), math.log(8, 2)",
        "math.isclose(0.1 + 0.2, 0.3), math.prod([1, 2, 3]), math.fsum([0.1] * 10), math.gcd(12, 18)",
        "x * math.sqrt(x.shape[0]), x / math.sqrt(64), x * math.pi, math.inf, math.tau, math.e",
        "math.comb(5, 2), math.perm(5, 2), math.factorial(6), math.isqrt(17), math.frexp(8.5)",
        "math.copysign(1, -0.0), math.isnan(math.nan), math.modf(2.5), math.dist([1, 2], [4, 6])",
    ],
    "operator": [
        "operator.itemgetter(1, 0)('ab'), operator.attrgetter('shape', 'T.dtype')(x)",
        "operator.methodcaller('sum', dim=0)(x), operator.mul(x, 2), operator.index(True)",
        "sorted([(1, 'b'), (0, 'a')], key=operator.itemgetter(1)), operator.countOf('aab', 'a')",
        "functools.reduce(operator.add, [x, x, x]), operator.length_hint([1, 2])",
    ],
    "functools": [
        "functools.partial(scale, by=3)(x), functools.partial(scale, x)(4, plus=1)",
        "functools.partial(functools.partial(scale, 1), 2).args, functools.partial(scale, 1).keywords",
        "functools.reduce(lambda a, b: a * b, range(1, 5)), functools.reduce(max, [3, 1], 5)",
        "wrapping(scale)(x), wrapping(scale).__name__, wrapping(scale).__doc__",
        "kind(1), kind([]), kind('s'), kind(True), kind.dispatch(int) is kind.dispatch(bool)",
        "Version(1) <= Version(2), Version(3) >= Version(2), Version(1) > Version(2)",
        "sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))",
        "Model(3).half(), Model(3).take('s'), Model(3).take(1)",
        "(lambda m: (m.area, m.area, vars(m), LOG[-1]))(Model(3))",
    ],
    "caches": [
        "squared(3), squared(4), squared(3), cubed(2), squared.__wrapped__(5)",
        "squared.cache_info().maxsize, squared.cache_clear(), squared(2), squared.cache_info()",
    ],
    "itertools": [
        "list(itertools.accumulate([1, 2, 3])), list(itertools.accumulate([1, 2], operator.mul, initial=5))",
        "list(itertools.chain('ab', [1])), list(itertools.chain.from_iterable(['ab', 'c']))",
        "list(itertools.combinations('abc', 2)), list(itertools.combinations_with_replacement('ab', 2))",
        "list(itertools.compress('abcd', [1, 0, 1])), list(itertools.islice(itertools.count(5, 2), 3))",
        "list(itertools.islice(itertools.cycle('ab'), 5)), list(itertools.dropwhile(bool, [1, 0, 2]))",
        "list(itertools.filterfalse(None, [0, 1])), list(itertools.islice('abcdef', 1, 6, 2))",
        "[(k, list(g)) for k, g in itertools.groupby('aabc')], [k for k, g in itertools.groupby([1, 3, 2], lambda v: v % 2)]",
        "list(itertools.pairwise('abc')), list(itertools.permutations('abc', 2)), list(itertools.product('ab', [1, 2]))",
        "list(itertools.repeat(x, 2)), list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.takewhile(bool, [1, 0]))",
        "[list(t) for t in itertools.tee([1, 2])], list(itertools.zip_longest('ab', [1], fillvalue='-'))",
        "list(itertools.product([0, 1], repeat=2)), next(itertools.count(2.5, 0.5)), sum(itertools.repeat(2, 3))",
        "caught(lambda: list(itertools.islice([1], -1))), caught(lambda: list(itertools.repeat()))",
    ],
    "new in itertools": [
        "list(itertools.batched('abcde', 2)) if hasattr(itertools, 'batched') else None",
    ],
    "collections": [
        "collections.Counter('aab').most_common(1), collections.Counter(a=1) + collections.Counter('ab')",
        "collections.Counter('aab') - collections.Counter('a'), collections.Counter('ab') & collections.Counter('b')",
        "(lambda c: (c.update('ab'), c.subtract('a'), c['zz'], c, list(c.elements()), c.total()))(collections.Counter())",
        "(lambda d: (d['k'].append(1), d, d.default_factory))(collections.defaultdict(list))",
        "(lambda d: (d.move_to_end('a'), d.popitem(last=False), d))(collections.OrderedDict(a=1, b=2))",
        "collections.OrderedDict(a=1, b=2) == collections.OrderedDict(b=2, a=1)",
        "(lambda d: (d.append(1), d.appendleft(0), d.rotate(1), d.pop(), d, d.maxlen))(collections.deque([5, 6], 4))",
        "(lambda d: (d.extend('ab'), d.extendleft('cd'), d.index('a'), d.count('b'), d[0], d))(collections.deque(maxlen=3))",
        "(lambda m: (m['a'], m['b'], m.maps, len(m), list(m), m.new_child({'a': 9})['a'], m.parents))(collections.ChainMap({'a': 1}, {'b': 2}))",
        "Plain(1), Plain(1, 2)._replace(p=7), Plain(1)._asdict(), Plain._fields, Plain._make([3, 4]), Plain(1) == (1, 5)",
        "Pair(1), Pair(1).both(), Pair(1) < Pair(2), Pair._field_defaults, Pair(1)._replace(right='z'), (lambda l, r: l)(*Pair(1))",
        "collections.UserDict(a=1).get('a'), collections.UserList([1]) + [2], collections.UserString('ab').upper()",
        "caught(lambda: collections.deque([1]).index(5)), caught(lambda: collections.deque()[0]), caught(lambda: Plain())",
    ],
    "contextlib": [
        "using(managed('a')), LOG[-2:]",
        "raising(managed('b'), ValueError('v')), LOG[-2:]",
        "caught(lambda: raising(managed('c'), KeyError('k'))), LOG[-1]",
        "raising(contextlib.suppress(KeyError), KeyError('k')), using(contextlib.nullcontext(5))",
        "using(contextlib.closing(Closes())), LOG[-1]",
        "stacked(), LOG[-4:]",
        "Doubles()(lambda: note('inside'))(), LOG[-3:]",
    ],
    "copy": [
        "copy.copy([1, [2]]), copy.deepcopy({'a': [1], 'b': (2, [3])}), copy.copy({1})",
        "(lambda p: (copy.copy(p), copy.deepcopy(p), copy.copy(p).tags is p.tags))(Point(1, 2, [3]))",
        "(lambda l: (lambda d: (d[0] is d[1], d))(copy.deepcopy([l, l])))([1])",
        "copy.copy(Frozen(1)), copy.deepcopy(Slotted(2)), copy.copy(Pair(1)), copy.deepcopy(Color.RED) is Color.RED",
        "copy.copy(collections.deque([1], 3)), copy.deepcopy(Pair(1, [2])), copy.copy(Slotted(2))",
    ],
    "own copies": [
        "copy.copy(x) is x, copy.copy(collections.Counter('a')), copy.deepcopy(collections.OrderedDict(a=[1]))",
    ],
    "dataclasses": [
        "Point(1), Point(1, y=5), Point(1) == Point(1), Point(1).tags is Point(1).tags, repr(Point(3))",
        "Frozen(1), hash(Frozen(1)) == hash(Frozen(1)), {Frozen(1): 2}[Frozen(1)], caught(lambda: setattr(Frozen(1), 'a', 2))",
        "Slotted(1) < Slotted(2), sorted([Slotted(2), Slotted(1)]), Slotted(1, 'a') == Slotted(1, 'b'), caught(lambda: setattr(Slotted(1), 'zz', 2))",
        "Named(width=3), Named(width=3, scale=2).area, caught(lambda: Named(3)), caught(lambda: Named())",
        "Child(1, z=4), repr(Child(1)), Child(1) == Point(1), isinstance(Child(1), Point)",
        "dataclasses.replace(Point(1), y=7), dataclasses.replace(Frozen(1), b='c'), caught(lambda: dataclasses.replace(Named(width=1), area=2))",
        "[f.name for f in dataclasses.fields(Child)], dataclasses.is_dataclass(Point), dataclasses.is_dataclass(3), Child.__match_args__",
        "(lambda p: (setattr(p, 'x', 5), p.tags.append(1), p))(Point(1))",
    ],
    "asdict": [
        "dataclasses.asdict(Point(1)), dataclasses.astuple(Holds(Point(1), {'a': Point(2)}))",
        "dataclasses.asdict(Holds(Point(1, tags=[3]), {'k': [Point(2)]})), dataclasses.asdict(Pair(1)) if False else 0",
    ],
    "enum": [
        "Color.RED, Color.RED.name, Color.RED.value, Color(1), Color['GREEN'], Color.ROUGE is Color.RED, Color.RED.lower",
        "list(Color), len(Color), Color.RED in Color, Color.RED == 1, repr(Color.RED), str(Color.RED), {Color.RED: 1}[Color.RED]",
        "Number.ONE + 1, Number.TWO == 2, Number(1), x * Number.TWO, Number.ONE < Number.TWO, f'{Number.ONE}', max(Number)",
        "Mode.R | Mode.W, Mode.RW & Mode.R, Mode.R in Mode.RW, ~Mode.R, bool(Mode(0)), Mode.R ^ Mode.RW, (Mode.R | Mode.W) is Mode.RW",
        "Word.A == 'a', Word('a'), Word.A.upper(), isinstance(Word.A, str), caught(lambda: Color(9)), caught(lambda: Color['X'])",
        "Color.__members__['RED'], [c.name for c in Color if c is not Color.RED], hash(Color.RED) == hash(Color.RED)",
    ],
    "types": [
        "types.SimpleNamespace(a=1).a, vars(types.SimpleNamespace(a=1))",
        "types.MappingProxyType({'a': 1})['a'], isinstance(scale, types.FunctionType), isinstance([].append, types.BuiltinMethodType)",
        "types.MethodType(scale, x)(3), type(None) is types.NoneType, isinstance(math, types.ModuleType)",
        "(int | str) == (str | int), list[int] == list[int], list[int].__origin__, dict[str, int].__args__, isinstance(1, int | str)",
        "isinstance((i for i in ()), types.GeneratorType)",
    ],
    "typing": [
        "Box[int](5).get(), Box(6).item, isinstance(Box(1), Box), Box[int] is Box[int]",
        "isinstance([], HasLen), isinstance(5, HasLen), isinstance(x, HasLen), issubclass(list, HasLen)",
        "typing.cast(int, 'a'), typing.get_origin(list[int]), typing.get_args(dict[str, int]), typing.Optional[int]",
        "typing.NamedTuple is NamedTuple, typing.List[int], typing.Union[int, str], typing.Dict[str, list]",
        "isinstance(5, typing.SupportsInt), isinstance('a', typing.Iterable), typing.TYPE_CHECKING",
    ],
    "class dicts": ["typing.get_type_hints(Point)['x']"],
    "weakref": [
        "REF() is KEPT, REF().x, VALUES['kept'] is KEPT, 'none' in VALUES",
        "(lambda p: weakref.ref(p)() is p)(Point(1)), weakref.proxy(KEPT).x",
    ],
    "inspect": [
        "list(inspect.signature(scale).parameters), inspect.signature(scale).parameters['by'].default",
        "inspect.isfunction(scale), inspect.ismethod(x.sum), inspect.isclass(Point)",
        "inspect.signature(scale).bind(1, 2, plus=3).arguments, str(inspect.signature(scale))",
    ],
    "flags of code": ["inspect.isgeneratorfunction(managed)"],
    "re": [
        "WORD.match('ab-12').groups(), WORD.match('ab-12')['first'], WORD.fullmatch('zz'), WORD.pattern, WORD.groupindex",
        "re.sub(r'[0-9]+', 'N', 'a1b22'), re.findall('[a-c]', 'xaybz'), re.split(',', 'a,b,c', maxsplit=1), re.escape('a.b')",
        "bool(re.search('(?i)AB', 'xaby')), re.compile('a+').sub(lambda m: m.group().upper(), 'baab')",
        "re.match('x', 'y'), caught(lambda: re.match(5, 'a')), WORD.match('ab-12').span('first'), re.subn('a', 'b', 'aa')",
    ],
    "matches one by one": ["[m.start() for m in re.finditer('a', 'aba')]"],
    "string": [
        "string.ascii_lowercase, string.digits, string.capwords('ab cd'), string.Template('$a b').substitute(a=1)",
        "string.punctuation[:3], string.hexdigits",
    ],
    "formatter": ["string.Formatter().format('{} {a}', 1, a=2)"],
    "environment": [
        "os.environ.get('DYNACAP_NOT_SET', 'no'), 'DYNACAP_NOT_SET' in os.environ, os.getenv('DYNACAP_NOT_SET')",
        "os.path.join('a', 'b'), os.path.basename('a/b.c'), os.path.splitext('b.c'), os.fspath('a'), os.sep",
    ],
    "clock": ["time.time() > 0, time.perf_counter() > 0, time.monotonic() > 0", "time.sleep(0)"],
    "random": [
        "random.random(), random.randint(1, 9), random.choice('abc'), random.uniform(1, 2), random.sample(range(9), 3)",
        "(lambda l: (random.shuffle(l), l))([1, 2, 3]), random.seed(3), random.getrandbits(8), random.gauss(0, 1)",
        "random.Random(5).random(), random.Random(5).choices([1, 2, 3], k=2)",
    ],
    "warnings": [
        "warned(lambda: warnings.warn('careful')), warned(lambda: warnings.warn('deep', DeprecationWarning, stacklevel=2))",
        "warned(lambda: warnings.warn(UserWarning('as object'), stacklevel=3)), warned(lambda: [warnings.warn('again') for _ in '12'])",
    ],
    "logging": [
        "QUIET.debug('not shown %s', 1), QUIET.isEnabledFor(10), QUIET.level, QUIET.name, logging.getLevelName(10)",
        "QUIET.info('not shown'), QUIET.getEffectiveLevel()",
    ],
    "loggers": ["logging.getLogger('dynacap_test.quiet') is QUIET"],
    "attrs": [
        "Slim(1), Slim(1, c='7').c, Slim(1) == Slim(1), caught(lambda: Slim(1, c=-1)), repr(Slim(2)), caught(lambda: Slim())",
        "Iced(1), hash(Iced(1)) == hash(Iced(1)), Worded(width=3), Worded(width=1) < Worded(width=2)",
        "(lambda s: (setattr(s, 'a', 5), s.b.append(1), s))(Slim(1)), caught(lambda: setattr(Slim(1), 'c', -1))",
        "attrs.asdict(Slim(1)), attrs.evolve(Iced(1), b='z'), [f.name for f in attrs.fields(Slim)], attrs.has(Slim)",
    ],
    "frozen attrs": ["caught(lambda: setattr(Iced(1), 'a', 2))"],
    "abc": [
        "Square().area(), Square().name, isinstance(Square(), Shape), caught(lambda: Shape()), issubclass(Square, Shape)",
        "list(Sized()), 6 in Sized(), Sized().index(7), list(reversed(Sized())), Sized().count(5), isinstance(Sized(), collections.abc.Sequence)",
        "(lambda m: (m.update(a=1), m.setdefault('b', 2), m.pop('a'), dict(m), 'b' in m, m.get('c'), list(m.items())))(Mapped())",
        "isinstance([], collections.abc.Iterable), isinstance(x, collections.abc.Hashable), isinstance({}, collections.abc.Mapping)",
    ],
    "tensor subclasses": [
        "torch.add(x.as_subclass(Tagged), 1), LOG[-1:], (x.as_subclass(Tagged) * 2).sum()",
        "isinstance(x.as_subclass(Tagged), Tagged), type(torch.relu(x.as_subclass(Tagged))).__name__",
    ],
}
HELPERS = """
def caught(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)

def using(manager):
    with manager as entered:
        return entered

def raising(manager, error):
    with manager:
        raise error
    return "went on"

def stacked():
    with contextlib.ExitStack() as stack:
        stack.enter_context(managed("one"))
        stack.callback(note, "called")
        stack.push(lambda *error: note(error[0]))
        return stack.enter_context(contextlib.nullcontext(3))

def warned(function):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function()
    return [(str(w.message), w.category, w.lineno, w.filename) for w in seen]
"""
# Why capture may stop in a group: by its nature, or since it is not known to capture.
MAY_BREAK: dict[str, set[str]] = {
    "caches": {"lru-cache", "unsupported-call"},
    "clock": {"clock"},
    "random": {"random", "random-generator", "unsupported-call"},
    "warnings": {
        "warning",
        "warning-of-caller",
        "running-frame",
        "frame-introspection",
        "unsupported-call",
    },
    "weakref": {"weak-reference"},
    "new in itertools": {"unsupported-call", "outside-iterator"},  # batched, from 3.12 on
    "flags of code": {"not-constant", "graph break [not-constant]"},  # from 3.12 on
    "class dicts": {"class-dict", "graph break [class-dict]"},
    "matches one by one": {"unsupported-call", "outside-iterator"},
    "formatter": {"unsupported-call"},
    "loggers": {"unsupported-call"},
    "own copies": {"own-copy"},
    "frozen attrs": {"exception-write"},
}

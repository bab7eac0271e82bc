"""Modules of the standard library, all their functions run in pieces."""

# Modules are taken apart and put together here; no type describes that.
# mypy: ignore-errors

import importlib
import inspect
import sys
from types import FunctionType, ModuleType

import pytest

from dynacap.resume.layout import GENERATOR_FLAGS


def in_pieces(name, wrap):
    """Return a copy of a module in which every function that is not a generator is wrapped."""
    original = importlib.import_module(name)
    copy = ModuleType(name)
    copy.__dict__.update(__file__=original.__file__, __package__=original.__package__)
    with open(original.__file__, encoding="utf-8") as file:
        exec(compile(file.read(), original.__file__, "exec"), copy.__dict__)
    wrap_all(copy, copy, wrap)
    return copy


def wrap_all(owner, module, wrap):
    for name, value in list(vars(owner).items()):
        if isinstance(value, FunctionType) and value.__globals__ is vars(module):
            if not value.__code__.co_flags & GENERATOR_FLAGS:
                setattr(owner, name, wrap(value))
        elif inspect.isclass(value) and value.__module__ == module.__name__ and owner is module:
            wrap_all(value, module, wrap)


SOURCE = '''
def sample(a, *b, c: int = 3, **d) -> "x":
    """Text."""
    with a as f, b: pass
    try: return [x ** -2 for x in (y, *z) if x not in w and not v or u]
    except (A, B) as e: raise C from e
    else: del a[1:2, ...], b.c
    finally: x = lambda q=1: (yield q)
    match d:
        case {"k": [1, *_], **rest} | P(q=2) if r: s: int = f"{t!r:>{n}}"
class K(L, metaclass=M):
    async def f(self): return await self <= 1 < 2 if x else {**y, "z": {1}}
'''


def workload_ast(ast):
    return ast.unparse(ast.parse(SOURCE)), ast.literal_eval("{'a': [1, -2.5, (3,)]}")


def workload_textwrap(textwrap):
    text = "  Some text, that is to be wrapped; hyphen-ated.  And more text of it.\n" * 3
    wrapped = textwrap.fill(text, 24, initial_indent="* ", max_lines=5)
    return wrapped, textwrap.dedent("\n   a\n     b\n"), textwrap.shorten(text, 30)


def workload_fractions(fractions):
    half, third = fractions.Fraction(1, 2), fractions.Fraction("-2/3")
    values = [half + third, half * 3, 2**third, half // third, divmod(half, third), half**2]
    return values, half < third, half == 0.5, round(third, 1), str(half), hash(third), -abs(third)


def workload_argparse(argparse):
    parser = argparse.ArgumentParser("prog", description="Does things.")
    parser.add_argument("names", nargs="+", type=int, help="the %(type)s names")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--on", action="store_true")
    group.add_argument("-o", "--off", action="count", default=0, help="off")
    values = parser.parse_args(["-oo", "1", "2"])
    with pytest.raises(SystemExit):
        parser.parse_args(["x", "--on", "-o"])
    return sorted(vars(values).items()), parser.format_help()


def workload_copy(copy):
    inner = [1, {2: (3, [4])}]
    both = copy.deepcopy({"a": inner, "b": inner, "c": (inner, {5})})
    return both, both["a"] is both["b"], copy.copy(inner)


def workload_difflib(difflib):
    one, other = "a b c d e f".split(), "a c b d x f g".split()
    matcher = difflib.SequenceMatcher(None, one, other)
    close = difflib.get_close_matches("appel", ["ape", "apple", "peach"])
    return matcher.get_opcodes(), matcher.ratio(), list(difflib.ndiff(one, other)), close


def workload_configparser(configparser):
    parser = configparser.ConfigParser()
    parser.read_string("[a]\nx = 1\ny = %(x)s2\n[b]\nz: yes\n")
    with pytest.raises(configparser.NoSectionError) as caught:
        parser.get("c", "x")
    return parser["a"]["y"], parser.getboolean("b", "z"), parser.sections(), str(caught.value)


def workload_statistics(statistics):
    values = [1, 2.5, 4, 4, 7]
    spread = statistics.stdev(values), statistics.pvariance(values), statistics.quantiles(values)
    return statistics.mean(values), statistics.median(values), statistics.mode(values), spread


WORKLOADS = {
    name.removeprefix("workload_"): each
    for name, each in list(globals().items())
    if name.startswith("workload_")
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_in_pieces(name, pieces, capsys, monkeypatch):
    expected = WORKLOADS[name](importlib.import_module(name))
    printed = capsys.readouterr()
    copy = in_pieces(name, pieces.wrap)
    # What pickles and annotations look up by the module's name must be found there.
    monkeypatch.setitem(sys.modules, name, copy)
    with pieces:
        found = WORKLOADS[name](copy)
    assert repr(found) == repr(expected)
    assert capsys.readouterr() == printed
    assert pieces.steps > 100

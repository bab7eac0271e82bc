"""Programs that nobody wrote do the same compiled as eager, in all that can be seen.

Bounded and always the same programs in the suite.  With DYNACAP_FUZZ_MINUTES (`make fuzz`) new ones
for that long; whatever fails is shown in its smallest form, one program for each kind of problem.
"""

import pytest
from hypothesis import given, reject, strategies as st

from tests.fuzz.hunt import MINUTES, hunted, limits
from tests.fuzz.run import problem, smallest
from tests.fuzz.writer import Choose, Program, Writer

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Whole programs: those that compile and load."""

    def choose(below: int) -> int:
        return draw(st.integers(0, below - 1))

    return written(choose, size=3 * choose(5))


def written(choose: Choose, size: int) -> Program:
    """A program made by those choices."""
    try:
        made = Writer(choose, size).program()
        compile(made.text, "<fuzzed>", "exec")
    except SyntaxError:
        reject()
    return made


@pytest.mark.skipif(bool(MINUTES), reason="the hunt below does the same for longer")
@limits(60)
@given(programs())
def test_generated_programs(program: Program) -> None:
    if problem(program):
        pytest.fail(report(program))


@pytest.mark.skipif(not MINUTES, reason="only with DYNACAP_FUZZ_MINUTES, as make fuzz sets it")
@pytest.mark.timeout(0)
def test_hunt() -> None:
    found = hunted(programs(), problem, report)
    assert not found, "\n\n".join(found.values())


def report(program: Program) -> str:
    """The smallest program that still fails so, and how."""
    small = smallest(program)
    return f"{small}\n\n{problem(small)}\n\nas in\n\n{program}"

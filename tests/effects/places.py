"""The places in a program where an effect may stand: alone, around graph breaks, in callees.

`PLACES` maps the name of each to the text of a function `program(x)` with `EFFECT` where the effect
goes. `look()` runs outside the graph and notes what it sees of the world at that moment.
"""

import textwrap

PLACES: dict[str, str] = {
    "alone": """
def program(x):
    x = x * 2
    EFFECT
    return x + 1
""",
    "after the operations, before a break": """
def program(x):
    x = x * 2
    EFFECT
    look()
    return x + 1
""",
    "after a break": """
def program(x):
    x = x * 2
    look()
    EFFECT
    return x + 1
""",
    "between breaks, in an inlined function": """
def inner(x):
    EFFECT
    look()
    x = x - 1
    EFFECT
    return x

def program(x):
    x = inner(x * 2)
    look()
    return x + 1
""",
    "an exception leaves the function": """
def inner(x):
    x = x * 2
    EFFECT
    x = x + 1
    raise LookupError("out")

def program(x):
    return inner(x + 1)
""",
    "an exception is caught by the caller": """
def inner(x):
    x = x * 2
    EFFECT
    raise LookupError("out")

def program(x):
    try:
        x = inner(x)
    except LookupError as error:
        notes.append(str(error))
        x = x + 5
    return x * 3
""",
    "in a finally, after an exception": """
def program(x):
    try:
        x = x * 2
        if x.shape[0] == 2:
            raise LookupError("early")
    except LookupError:
        x = x + 1
    finally:
        EFFECT
    return x
""",
    "in a loop with a break": """
def program(x):
    for turn in range(2):
        EFFECT
        x = x + 1
        if turn == 0:
            look()
    return x
""",
    "in a generator": """
def parts(x):
    yield x + 1
    EFFECT
    yield x + 2

def program(x):
    total = 0
    for part in parts(x):
        total = total + part
    return total
""",
    "in a closure": """
def program(x):
    def inner():
        nonlocal x
        x = x * 2
        EFFECT
        return x + 1
    return inner()
""",
}


def program(place: str, effect: str) -> str:
    """The text of the program that has the effect at a place."""
    declared, _, rest = effect.partition("\n") if effect.startswith("global ") else ("", "", effect)
    lines = []
    for line in PLACES[place].splitlines():
        if line.strip() == "EFFECT":
            lines.append(textwrap.indent(rest, line[: -len("EFFECT")]))
        else:
            lines.append(line)
        if declared and line.strip().startswith("def "):
            depth = len(line) - len(line.lstrip()) + 4
            lines.append(" " * depth + declared)
    return "\n".join(lines)

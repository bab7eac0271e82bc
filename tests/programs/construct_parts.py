"""What the programs of constructs_*.py are made of; see test_break_matrix.py."""


def S(log, k):
    """A place: notes that it was reached."""
    log.append(k)
    return k


class Manager:
    """Notes what is done to it; swallows ValueErrors if `swallow`."""

    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append((f"exit {self.name}", kind and kind.__name__, str(error), trace is None))
        return self.swallow and kind is not None and issubclass(kind, ValueError)


class Base:
    """What `super()` finds."""

    def __init__(self, log):
        self.log = log

    def step(self, x, k):
        self.log.append(("base", k))
        return x + k


class Counted:
    """An iterable of a user's class."""

    def __init__(self, log, stop):
        self.log, self.at, self.stop = log, 0, stop

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.stop:
            raise StopIteration
        self.at += 1
        S(self.log, 8)
        return self.at


def iter_of(x, log):
    try:
        yield x
        S(log, 9)
        yield x + 1
    finally:
        log.append("closed")


class Pair:
    """A class that patterns take apart."""

    __match_args__ = ("left", "right")

    def __init__(self, left, right):
        self.left, self.right = left, right


class Async:
    """An asynchronous context manager."""

    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append("aenter")

    async def __aexit__(self, *info):
        self.log.append(("aexit", info[0] and info[0].__name__))


async def agen(x, log):
    yield x
    S(log, 8)
    yield x * 2

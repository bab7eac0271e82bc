"""CPython's own tests, with every frame of them captured: the verdicts must be those without.

    python benchmarks/cpython_suite.py [--module NAME ...] [--test TEXT] [--hook HOOK ...]
        [--jobs N] [--json FILE] [--verbose]
    python benchmarks/cpython_suite.py --show     what is kept in results, as the README's table

Each module of the interpreter's `test` package runs in processes of its own: without dynacap, and
under each hook with every function of the tests' own code captured (test methods, what they define
and call, helper modules).  A test that kills its process or takes too long is a verdict too, and
the rest of the module goes on in a new process.  Printed for each module: tests, verdicts that are
the same and that differ, known ones (cpython_exceptions.txt) apart; and of the code objects that
ran a frame, how many were captured whole, how many in pieces, how many ran as plain Python and why.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cpython_modules import environment, known, modules

WORKER = Path(__file__).with_name("cpython_worker.py")
RESULTS = Path(__file__).with_name("results") / "cpython_suite.json"
HOOKS = ("pep523", "settrace")
MOST_RESTARTS = 30
PATIENCE = 10  # times the limit, for tests that did not end within it
MOST_TESTS = 60  # that may take the limit of a test, by the clock
TIMEOUTS = (None, -signal.SIGPROF)
SLOW = 20  # seconds; tests that take longer are named
NOT_OFFERED = "never offered"
SHOWN_REASONS = 14


@dataclass
class Run:
    """One module run in one way."""

    verdicts: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    codes: dict[tuple[str, str, int], str] = field(default_factory=dict)
    frames: dict[tuple[str, str, int], tuple[str, dict[str, int], dict[str, int]]] = field(
        default_factory=dict
    )
    internal: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    capturing: float = 0.0

    def read(self, lines: list[dict[str, Any]]) -> str:
        """Take in what a worker wrote; the test that it was running when it ended, if any."""
        running = ""
        for line in lines:
            if "start" in line:
                running = line["start"]
            elif "test" in line:
                running = ""
                self.verdicts[line["test"]] = line["verdict"]
                self.details[line["test"]] = line["detail"]
                self.took[line["test"]] = line.get("took", 0.0)
            self.seconds += line.get("seconds", 0.0)
            self.capturing += line.get("capturing", 0.0)
            self.internal.update(line.get("internal", {}))
            for file, name, number, kind in line.get("codes", ()):
                self.codes[file, name, number] = kind
            for file, name, number, *rest in line.get("frames", ()):
                self.frames[file, name, number] = tuple(rest)
        return running


def work(module: str, mode: str, hook: str, options: argparse.Namespace) -> Run:
    """Run a module in workers until each of its tests has a verdict.

    Those that do not end within the limit are run again in the end, with more patience.
    """
    run, started = Run(), time.perf_counter()
    _run_all(run, module, mode, hook, options.test, options.limit)
    known_to_differ = {each.test for each in known()}
    late = [name for name in run.late if name not in known_to_differ]
    for name in late:
        del run.verdicts[name]
    if late:
        _run_all(run, module, mode, hook, options.test, PATIENCE * options.limit)
    run.seconds = run.seconds or time.perf_counter() - started
    return run


def _run_all(run: Run, module: str, mode: str, hook: str, text: str, limit: float) -> None:
    """Run those tests that have no verdict so far, with so many seconds for each."""
    call = _fork if mode == "capture" else _call
    with tempfile.TemporaryDirectory(prefix="cpython_suite") as folder:
        done, out = Path(folder, "done"), Path(folder, "out")
        given = [module, str(out), "--mode", mode, "--done", str(done)]
        given += ["--test", text, "--limit", str(limit)]
        for _ in range(MOST_RESTARTS):
            done.write_text("\n".join(run.verdicts))
            out.write_text("")
            code, output = call(given, folder, hook, limit * MOST_TESTS)
            running = run.read([json.loads(line) for line in out.read_text().splitlines()])
            if code == 0:
                break
            name = running or _outside(module)
            run.verdicts[name] = "timeout" if code in TIMEOUTS or "Timeout (" in output else "crash"
            run.details[name] = f"exit code {code}\n{output}"
            if not running:
                break
            if code == -signal.SIGPROF:
                run.late.append(running)


def _outside(module: str) -> str:
    """The name of what goes wrong when no test runs."""
    return f"test.{module} (outside its tests)"


def _call(given: list[str], folder: str, hook: str, limit: float) -> tuple[int | None, str]:
    """The exit code of a worker, None where it took too long, and the end of its output."""
    log = Path(folder, "log")
    with log.open("wb") as to:
        try:
            code: int | None = subprocess.run(
                [sys.executable, str(WORKER), *given], cwd=folder, env=environment(hook),
                stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT, timeout=limit,
                check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
    return code, _end(log)


def _end(log: Path) -> str:
    return log.read_bytes()[-6000:].decode(errors="replace")


_SERVERS: dict[tuple[int, str], subprocess.Popen[str]] = {}


def _fork(given: list[str], folder: str, hook: str, limit: float) -> tuple[int | None, str]:
    """The same by a fork of a process that has imported dynacap, which takes seconds, before."""
    key = (threading.get_ident(), hook)
    server = _SERVERS.get(key)
    if server is None:
        server = _SERVERS[key] = subprocess.Popen(
            [sys.executable, str(WORKER), "--serve"], env=environment(hook), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(server.kill)
    assert server.stdin is not None
    assert server.stdout is not None
    log = Path(folder, "log")
    log.write_bytes(b"")
    request = {"arguments": given, "folder": folder, "log": str(log), "seconds": limit}
    print(json.dumps(request), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline()), _end(log)


@dataclass
class Result:
    """A module under one hook, beside what it does without."""

    module: str
    hook: str
    tests: int
    differing: dict[str, tuple[str, str, str]]
    excused: dict[str, str]
    whole: int
    pieces: int
    plain: dict[str, int]
    breaks: dict[str, int]
    internal: dict[str, int]
    seconds: float
    seconds_plain: float
    capturing: float
    slow: dict[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """How many of the frames' codes were captured whole or in pieces, in per cent."""
        captured = self.whole + self.pieces
        return 100 * captured / max(captured + sum(self.plain.values()), 1)


def compare(module: str, hook: str, plain: Run, census: Run, captured: Run) -> Result:
    """Verdict by verdict, and what became of every code object that ran a frame."""
    differing, excused = {}, {}
    for test in dict.fromkeys([*plain.verdicts, *captured.verdicts]):
        before = plain.verdicts.get(test, "did not run")
        after = captured.verdicts.get(test, "did not run")
        reasons = [each.reason for each in known() if each.covers(test, hook)]
        if before != after and reasons:
            excused[test] = reasons[0]
        elif before != after:
            differing[test] = (before, after, captured.details.get(test, ""))
    kinds: Counter[str] = Counter()
    why: Counter[str] = Counter()
    breaks: Counter[str] = Counter()
    for key in dict.fromkeys([*census.codes, *captured.frames]):
        kind, reasons_plain, reasons_break = captured.frames.get(key, ("plain", {}, {}))
        kinds[kind] += 1
        breaks.update(reasons_break)
        if kind == "plain":
            why[next(iter(reasons_plain), census.codes.get(key) or NOT_OFFERED)] += 1
    return Result(
        module, hook, len(plain.verdicts), differing, excused, kinds["whole"], kinds["pieces"],
        dict(why), dict(breaks), dict(captured.internal), captured.seconds, plain.seconds,
        captured.capturing, {t: s for t, s in captured.took.items() if s > SLOW},
    )  # fmt: skip


def measure(module: str, options: argparse.Namespace) -> Iterator[Result]:
    """The module without dynacap, and then under each hook."""
    plain = work(module, "plain", "auto", options)
    census = work(module, "census", "auto", options)
    for hook in options.hook:
        yield compare(module, hook, plain, census, work(module, "capture", hook, options))


def line(result: Result) -> str:
    """The figures of a module."""
    good = result.tests - len(result.differing) - len(result.excused)
    return (
        f"{result.module:26} {result.hook:8} {result.tests:5} {good:5} {len(result.differing):5}"
        f" {len(result.excused):5} {result.whole:6} {result.pieces:6}"
        f" {sum(result.plain.values()):6} {result.share:6.1f}%"
        f" {result.seconds_plain:7.1f} {result.seconds:7.1f}"
    )


def show(result: Result, verbose: bool) -> None:
    """A line for a module, and one for each difference."""
    print(line(result), flush=True)
    for test, (before, after, detail) in result.differing.items():
        print(f"    {test}: {before} -> {after}")
        if verbose:
            print("".join(f"        {line}\n" for line in detail.splitlines()))
    for test, seconds in result.slow.items():
        print(f"    {test} took {seconds:.0f} s")
    for text, count in result.internal.items():
        print(f"    internal error, {count} times: {text}")


HEADER = (
    f"{'module':26} {'hook':8} {'tests':>5} {'same':>5} {'other':>5} {'known':>5} {'whole':>6}"
    f" {'pieces':>6} {'plain':>6} {'share':>7} {'s eager':>7} {'s':>7}"
)


def total(results: list[Result], hook: str) -> Result:
    """The sum over the modules."""
    of_hook = [each for each in results if each.hook == hook]
    whole = Result("total", hook, 0, {}, {}, 0, 0, {}, {}, {}, 0, 0, 0)
    for each in of_hook:
        for name in ("tests", "whole", "pieces", "seconds", "seconds_plain", "capturing"):
            setattr(whole, name, getattr(whole, name) + getattr(each, name))
        whole.differing |= each.differing
        whole.excused |= each.excused
        whole.plain = dict(Counter(whole.plain) + Counter(each.plain))
        whole.breaks = dict(Counter(whole.breaks) + Counter(each.breaks))
    return whole


def show_total(results: list[Result], hook: str) -> None:
    """The line of the sum, and the commonest reasons."""
    whole = total(results, hook)
    print("-" * len(HEADER))
    print(line(whole))
    print(f"    capturing took {whole.capturing:.0f} s")
    for title, counts in (("plain Python because", whole.plain), ("breaks", whole.breaks)):
        most = Counter(counts).most_common(SHOWN_REASONS)
        print(f"    {title}: " + ", ".join(f"{reason} {count}" for reason, count in most))


def save_results(results: list[Result], path: Path) -> None:
    """Write what was found, in place of what the file says of the same modules, hooks and Python.

    Of each difference the last line is kept, which is that of the exception.
    """
    known: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    here = {"python": platform.python_version(), "day": time.strftime("%Y-%m-%d")}
    here["commit"] = _commit()
    for result in results:
        found = {**here, **asdict(result), "share": round(result.share, 1)}
        found["differing"] = {
            test: (before, after, detail.strip().rpartition("\n")[2].strip()[:200])
            for test, (before, after, detail) in result.differing.items()
        }
        same = [found[name] for name in ("python", "hook", "module")]
        known = [each for each in known if [each[n] for n in ("python", "hook", "module")] != same]
        known.append(found)
    path.write_text(json.dumps(known, indent=1) + "\n")


def _commit() -> str:
    """The commit that is checked out here; "" where there is none."""
    command = ["git", "-C", str(RESULTS.parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The README's table of all that a file of results has: a line for each Python and hook."""
    yield (
        "| Python, hook | modules run | tests | other verdict | known | frames captured whole "
        "| in pieces | plain, and why |"
    )
    yield "|" + " --- |" * 8
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["python"], row["hook"]), []).append(row)
    for (python, hook), of in sorted(groups.items()):
        plain = sum((Counter(row["plain"]) for row in of), Counter())
        whole, pieces = (sum(row[kind] for row in of) for kind in ("whole", "pieces"))
        codes = whole + pieces + plain.total()
        shares = [f"{100 * part / codes:.0f} %" for part in (whole, pieces, plain.total())]
        counts = [len(of), sum(row["tests"] for row in of)]
        counts += [sum(len(row[kind]) for row in of) for kind in ("differing", "excused")]
        why = ", ".join(f"{reason} {count}" for reason, count in plain.most_common(4))
        name = f"{python}, {'C' if hook == 'pep523' else hook}"
        cells = [name, *(f"{count:,}" for count in counts), *shares[:2], f"{shares[2]} ({why})"]
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Run what was asked for; the exit status tells whether all verdicts are the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--module", nargs="+", default=[], help="only these, such as test_dict")
    parser.add_argument("--test", default="", help="only tests with this in their name")
    parser.add_argument("--hook", nargs="+", choices=HOOKS, default=["pep523"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=20, help="CPU seconds for one test")
    parser.add_argument("--json", type=Path, help="write all that was found to this file")
    parser.add_argument("--verbose", action="store_true", help="show how each test went wrong")
    parser.add_argument("--show", action="store_true", help="the table of the results kept here")
    options = parser.parse_args()
    if options.show:
        print("\n".join(table(json.loads(RESULTS.read_text()))))
        return 0
    print(HEADER)
    results: list[Result] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        chosen = options.module or modules()
        for found in pool.map(lambda module: list(measure(module, options)), chosen):
            for result in found:
                show(result, options.verbose)
            results += found
            if options.json:
                save_results(found, options.json)
    for hook in options.hook:
        show_total(results, hook)
    return any(result.differing for result in results)


if __name__ == "__main__":
    sys.exit(main())

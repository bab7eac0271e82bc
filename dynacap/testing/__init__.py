"""Differential tests: run a function plain and compiled, and compare all that can be seen.

The parts, in the order in which they are used:

* `snapshot` turns any value into a plain description of itself (values, strides, aliasing);
* `observe` runs a sequence of calls and notes what came out of each;
* `difference` says how two descriptions differ;
* `check` puts them together: `check_same`, `check_scenario` and the decorators for tests.

And `capture_all`: capture everything that runs, for test suites which know nothing of dynacap.
"""

from dynacap.testing.capture_all import CaptureAll, Frames, functions_in
from dynacap.testing.check import (
    Mismatch,
    Outcome,
    check_same,
    check_scenario,
    compare,
    program,
    scenario,
)
from dynacap.testing.difference import Tolerance, differences
from dynacap.testing.observe import Call, Scenario, call, observe
from dynacap.testing.snapshot import Again, Branch, Leaf, Snapshot, snapshot

__all__ = [
    "Again",
    "Branch",
    "Call",
    "CaptureAll",
    "Frames",
    "Leaf",
    "Mismatch",
    "Outcome",
    "Scenario",
    "Snapshot",
    "Tolerance",
    "call",
    "check_same",
    "check_scenario",
    "compare",
    "differences",
    "functions_in",
    "observe",
    "program",
    "scenario",
    "snapshot",
]

"""The callable that stands before a compiled graph while its first calls are checked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynacap import log
from dynacap.backends.fall_back import withdraw
from dynacap.backends.verify.compare import differences
from dynacap.backends.verify.copies import copied
from dynacap.backends.verify.exact import exact_run
from dynacap.backends.verify.reduce import reduced
from dynacap.backends.verify.reproduction import write_reproduction
from dynacap.backends.verify.run import RandomState, run
from dynacap.errors import VerificationFailed
from dynacap.fxlite import GraphModule

if TYPE_CHECKING:
    from dynacap.backends.verify.request import Verification

Compiled = Callable[..., Any]
SHOWN = 5


def verified(
    request: Verification,
    backend: Callable[..., Any],
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
) -> Compiled:
    """What ``backend`` makes of the graph, with its first calls checked."""
    eager = copy.copy(graph_module)  # a backend may change the graph that it is given
    compiled: Compiled = backend(graph_module, example_inputs)
    withdraw(graph_module)  # one that is found wrong runs eagerly
    if not callable(compiled):
        return compiled  # the caller refuses it
    return Verified(request, backend, eager, compiled)


@dataclass
class Verified:
    """Runs the compiled graph; before each of its first calls it is judged on copies.

    Neither side touches the user's tensors until that is done.
    """

    request: Verification
    backend: Callable[..., Any]
    eager: GraphModule
    compiled: Compiled

    def __post_init__(self) -> None:
        self.left = self.request.calls

    def __call__(self, *inputs: Any) -> Any:
        if self.left:
            self.left -= 1
            self._check(inputs)
        return self.compiled(*inputs)

    def _check(self, inputs: Sequence[Any]) -> None:
        random = RandomState()
        found = mismatches(self.eager, self.compiled, inputs)
        if not found:
            return
        message = self._report(found, inputs)
        random.restore()
        if not self.request.heal:
            raise VerificationFailed(message)
        log.warn(f"{message}\nThe graph runs eagerly from now on.", graph=self.eager.name)
        self.left, self.compiled = 0, self.eager.forward

    def _differs(self, part: GraphModule, inputs: Sequence[Any]) -> bool:
        """Whether a part of the graph differs, too; one that cannot be compiled shows nothing."""
        try:
            compiled = self.backend(copy.copy(part), copied(inputs).values)
        except Exception:
            return False
        return bool(mismatches(part, compiled, inputs))

    def _report(self, found: list[str], inputs: Sequence[Any]) -> str:
        more = [f"... and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        lines = [f"  {line}" for line in [*found[:SHOWN], *more]]
        shown = self._shown(found, inputs)
        return "\n".join([f"{self.eager.name} differs from eager:", *lines, f"  {shown}"])

    def _shown(self, found: list[str], inputs: Sequence[Any]) -> str:
        """Where the program is that shows it; the verdict stands without one, too."""
        try:
            small = reduced(self.eager, inputs, self._differs)
            path = write_reproduction(small, self.backend, found)
        except Exception as error:
            return f"no program that shows it could be written: {type(error).__name__}: {error}"
        size = f"{small.operations} of {small.before} operations"
        return f"a program that shows it, of {size}: {path}"


def mismatches(eager: GraphModule, compiled: Compiled, inputs: Sequence[Any]) -> list[str]:
    """How the compiled graph differs from the graph itself on these inputs."""
    expected = run(eager.forward, copied(inputs))
    found = run(compiled, copied(inputs))
    told = differences(expected, found)
    if told and expected.error is None and found.error is None:
        told = differences(expected, found, exact_run(eager, inputs))
    return told

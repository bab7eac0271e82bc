from collections.abc import Callable
from typing import Any

class Graph:
    """A compiled graph, callable with its inputs."""

    def __init__(
        self,
        pending: Callable[[Graph, tuple[Any, ...]], Any],
        make_step: Callable[[int], Callable[..., tuple[Any, ...]]],
        inputs: bytes,
        outputs: tuple[Any, ...],
        constants: tuple[Any, ...],
    ) -> None: ...
    @property
    def ready(self) -> bool: ...
    def load(self, path: str, /) -> None: ...
    def __call__(self, *args: Any) -> tuple[Any, ...]: ...

def attach(libtorch_cpu: str, libtorch_python: str, tensor: type, offset: int, /) -> None: ...
def find_word(tensors: tuple[Any, ...], addresses: tuple[int, ...], /) -> int: ...

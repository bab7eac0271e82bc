"""A debugging aid: runs node by node and holds every result against the graph's metadata."""

from collections.abc import Callable, Sequence
from typing import Any

from dynacap.backends.registry import register_backend
from dynacap.errors import MetadataMismatch, format_stack
from dynacap.fxlite import GraphModule, Interpreter, Node
from dynacap.fxlite.locations import user_stack
from dynacap.fxlite.printer import example_value


@register_backend(name="interpreter")
def interpreter(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A function that raises MetadataMismatch at the first result which is not as captured."""

    def run(*args: Any) -> Any:
        return CheckingInterpreter(graph_module).run(*args)

    return run


class CheckingInterpreter(Interpreter):
    """Compares each result with the node's ``example_value``."""

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        expected = example_value(node)
        if expected is not None:
            for found in differences(expected, result, ""):
                raise MetadataMismatch(_message(node, found))
        return result


def differences(expected: Any, result: Any, where: str) -> list[str]:
    """How ``result`` differs from the value that stood for it, a sentence for each way."""
    if isinstance(expected, (tuple, list)):
        return _sequence_differences(expected, result, where)
    if not _is_tensor(expected):
        return _scalar_differences(expected, result, where)
    if not _is_tensor(result):
        return [f"{where}expected a tensor, found {type(result).__name__}"]
    found = []
    for what, wanted, got in _properties(expected, result):
        if not _agree(wanted, got):
            found.append(f"{where}{what}: expected {_text(wanted)}, found {_text(got)}")
    return found


def _sequence_differences(expected: Sequence[Any], result: Any, where: str) -> list[str]:
    if not isinstance(result, (tuple, list)) or len(result) != len(expected):
        size = len(result) if isinstance(result, (tuple, list)) else type(result).__name__
        return [f"{where}expected {len(expected)} values, found {size}"]
    found: list[str] = []
    for index, (wanted, got) in enumerate(zip(expected, result, strict=True)):
        found += differences(wanted, got, f"{where}item {index}: ")
    return found


def _scalar_differences(expected: Any, result: Any, where: str) -> list[str]:
    if isinstance(expected, (bool, int, float, str)) and type(result) is type(expected):
        same = expected == result or (expected != expected and result != result)
        return [] if same else [f"{where}expected {expected!r}, found {result!r}"]
    return []


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "stride") and hasattr(value, "dtype") and hasattr(value, "device")


def _properties(expected: Any, result: Any) -> list[tuple[str, Any, Any]]:
    """What is compared, in the order in which a difference is told."""
    found = [
        ("dtype", expected.dtype, result.dtype),
        ("device", expected.device, result.device),
        ("layout", expected.layout, result.layout),
        ("shape", tuple(expected.shape), tuple(result.shape)),
    ]
    if str(expected.layout) == "torch.strided" and str(result.layout) == "torch.strided":
        found.append(("stride", _meaningful_strides(expected), _meaningful_strides(result)))
    return found


def _meaningful_strides(tensor: Any) -> tuple[Any, ...]:
    # The stride of a dimension of one element, and of a tensor without any, is never used.
    sizes = [_known(size) for size in tensor.shape]
    if 0 in sizes:
        return ()
    strides = zip(sizes, tensor.stride(), strict=True)
    return tuple(None if size == 1 else stride for size, stride in strides)


def _agree(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, tuple) and isinstance(got, tuple):
        return len(wanted) == len(got) and all(map(_agree, wanted, got))
    known = _known(wanted)
    return known is None or got is None or bool(known == got)


def _known(size: Any) -> Any:
    """A size if it is a number; None if it is symbolic, since asking would add a guard."""
    return None if type(size).__name__.startswith("Sym") else size


def _text(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _message(node: Node, found: str) -> str:
    lines = [f"while running {node.format_node()!r}: {found}"]
    stack = user_stack(node.meta)
    if stack:
        lines += ["  your code (most recent call last):", format_stack(stack)]
    lines.append(
        "  what to do: if eager gives what was found, the captured metadata is wrong: report it"
        " with the operation; if not, an earlier operation ran on other inputs than captured"
    )
    return "\n".join(lines)

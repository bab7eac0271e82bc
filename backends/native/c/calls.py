"""A call of an ATen operator as C: by its shim, else by torch's dispatcher, else from Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from dynacap.backends.native.c.arguments import Handle, NotInC, shim_arguments, stable_value
from dynacap.backends.native.c.blas import product_of
from dynacap.backends.native.c.shims import shim_name, shims
from dynacap.backends.native.c.sizes import number_text
from dynacap.backends.native.loops.program import Buffer, Call, numbers_of, sees_argument
from dynacap.backends.native.schedule.in_place import copies_to_itself
from dynacap.fxlite.risks import OWN_NAMESPACES

Result = Callable[[Buffer | None], str]  # where a result goes; None: nobody uses it


@dataclass(frozen=True)
class Function:
    """A C function to be found in libtorch when the library is loaded."""

    name: str
    parameters: tuple[str, ...]
    result: str = "int"

    def declaration(self) -> str:
        """The pointer that the loader fills in."""
        return f"static {self.result} (*{self.name})({', '.join(self.parameters)});"


@dataclass(frozen=True)
class CallText:
    """An expression that is not 0 if the call failed, and the lines that follow a success."""

    expression: str
    function: Function | None = None
    after: tuple[str, ...] = ()


# Where it moves nothing, as with a tensor copied to itself, the way there is all that it takes: the
# dispatcher's, by name and with a stack, is three times as long.
_COPY = Function("aoti_torch_copy_", ("AtenTensorHandle", "AtenTensorHandle", "int32_t"))


def takes_result(call: Call) -> bool:
    """Whether the operator can write its one result into memory that is there already."""
    return product_of(call) is not None or _out_form(call) is not None


def _out_form(call: Call) -> tuple[torch._ops.OpOverload, str] | None:
    if len(call.results) != 1 or not isinstance(call.results[0], Buffer):
        return None
    found = getattr(call.target.overloadpacket, "out", None)
    name = shim_name(call.target, "out")
    if found is None or name not in shims() or call.target._overloadname != "default":
        return None
    try:
        parameters = ("AtenTensorHandle", *(kind for kind, _ in _arguments(call, _any_handle)))
    except NotInC:
        return None
    return (found, name) if parameters == shims()[name] else None


def _any_handle(buffer: Buffer) -> str:
    return "0"


def call_text(call: Call, index: int, handle: Handle, result: Result) -> CallText:
    """C for a call: ``handle`` is the C expression of an argument, ``result`` where one goes."""
    if copies_to_itself(call):
        return CallText(f"{_COPY.name}({handle(call.args[0])}, {handle(call.args[1])}, 0)", _COPY)
    # The exceptions of others' code have types that C does not hand on.
    for attempt in () if is_foreign(call) else (_into, _by_shim, _by_dispatcher):
        try:
            return attempt(call, handle, result)
        except NotInC:
            continue
    return _from_python(call, index, handle, result)


def is_foreign(call: Call) -> bool:
    """Whether it is an operator that is not torch's own."""
    return call.target.namespace not in OWN_NAMESPACES


def _arguments(call: Call, handle: Handle) -> list[tuple[str, str]]:
    floating = all(buffer.dtype.is_floating_point for buffer in call.buffers())
    pairs = []
    for kind, value in bound(call):
        if floating and str(kind) in ("number", "Scalar") and type(value) is int:
            value = float(value) if abs(value) <= 2**53 else value
        pairs += shim_arguments(kind, value, handle)
    return pairs


def bound(call: Call) -> list[tuple[Any, Any]]:
    """The type and the value of each argument in the schema's order, defaults filled in."""
    values = []
    for position, argument in enumerate(call.target._schema.arguments):
        if position < len(call.args):
            value = call.args[position]
        elif argument.name in call.kwargs:
            value = call.kwargs[argument.name]
        else:
            value = argument.default_value
        values.append((argument.real_type, value))
    return values


def _into(call: Call, handle: Handle, result: Result) -> CallText:
    found = _out_form(call)
    if found is None:
        raise NotInC("no form that takes its result")
    (out,) = call.results
    assert out is not None
    texts = [text for _, text in _arguments(call, handle)]
    function = Function(found[1], shims()[found[1]])
    return CallText(f"{found[1]}({', '.join([handle(out), *texts])})", function)


def _by_shim(call: Call, handle: Handle, result: Result) -> CallText:
    name = shim_name(call.target)
    declared = shims().get(name)
    returns = call.target._schema.returns
    if declared is None or any(str(each.type) != "Tensor" for each in returns):
        raise NotInC("no shim")
    if sees_argument(call.target):
        raise NotInC("a shim copies what is to be conjugated or negated when it is read")
    pairs = _arguments(call, handle)
    kinds = (*(kind for kind, _ in pairs), *("AtenTensorHandle*",) * len(returns))
    if kinds != declared:
        raise NotInC("a shim of another signature")
    places = [result(each) for each in call.results]
    unused = [place for place, each in zip(places, call.results, strict=True) if each is None]
    after = tuple(f"dynacap_drop(&{place});" for place in unused)
    texts = [*(text for _, text in pairs), *(f"&{place}" for place in places)]
    return CallText(f"{name}({', '.join(texts)})", Function(name, declared), after)


def _by_dispatcher(call: Call, handle: Handle, result: Result) -> CallText:
    schema = call.target._schema
    kinds = [str(each.type) for each in schema.returns]
    listed = kinds == ["List[Tensor]"]
    if not listed and any(kind != "Tensor" for kind in kinds):
        raise NotInC(f"results {kinds}")
    values = [stable_value(kind, value, handle) for kind, value in bound(call)]
    name, overload = schema.name, schema.overload_name
    places = ", ".join(f"&{result(each)}" if each else "0" for each in call.results)
    text = (
        f'dynacap_dispatch("{name}", "{overload}", {max(len(values), len(kinds))},'
        f" (Value[{max(len(values), len(kinds), 1)}]){{{', '.join(values) or '0'}}},"
        f" {-len(call.results) if listed else len(call.results)},"
        f" (Tensor *[]){{{places or '0'}}})"
    )
    return CallText(text)


def _from_python(call: Call, index: int, handle: Handle, result: Result) -> CallText:
    places = ", ".join(f"&{result(each)}" if each else "0" for each in call.results)
    return CallText(
        f"dynacap_python(graph, {index}, {step_arguments(call, handle)},"
        f" {len(call.results)}, (Tensor *[]){{{places or '0'}}})"
    )


def step_arguments(call: Call, handle: Handle) -> str:
    """What Python needs to make a call: how many tensors, an array of them, and numbers so too."""
    tensors, numbers = list(map(handle, call.buffers())), list(map(number_text, numbers_of(call)))
    return (
        f"{len(tensors)}, (Tensor[]){{{', '.join(tensors) or '0'}}},"
        f" {len(numbers)}, (int64_t[]){{{', '.join(numbers) or '0'}}}"
    )

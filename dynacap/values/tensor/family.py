"""Tensors under capture: the graph that grows, and what each operation gives."""

from __future__ import annotations

import functools
import importlib
import operator
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from dynacap.backends import torch_refusals, torch_state
from dynacap.backends.fakes.world import FakeWorld
from dynacap.backends.numpy_layer.memory import SCALARS, as_tensor, facts, root, twin_of, unfit
from dynacap.backends.torch_overrides import PLAIN_CLASSES, is_capturable
from dynacap.backends.torch_surface import DUNDERS, METADATA, REFLECTED, method_name
from dynacap.config import config
from dynacap.errors import GraphBreak
from dynacap.fxlite.graph import Graph
from dynacap.fxlite.node import Node
from dynacap.fxlite.risks import may_raise
from dynacap.guards.ref import Ref
from dynacap.guards.source import Source
from dynacap.guards.tensor_kind import expected_of
from dynacap.values.array import ArrayValue, MemoryValue, operate, takes, to_array
from dynacap.values.base import Const, Value
from dynacap.values.data_model.attributes import instance_dict
from dynacap.values.object import payload_of
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor import fields, indexing
from dynacap.values.tensor.arguments import lower_all, lower_keywords
from dynacap.values.tensor.dynamic import History
from dynacap.values.tensor.late_errors import LateErrors
from dynacap.values.tensor.overrides import ask
from dynacap.values.tensor.recall import Call, Recall, writes
from dynacap.values.tensor.results import holds_symbols, holds_tensors, static_value, wrap_result
from dynacap.values.tensor.unbacked import read_elements
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

_NUMBERS: tuple[type, ...] = (int, float, bool, complex, *SCALARS)
_NOT_IN_NAMES = re.compile(r"\W+")


class TensorFamily:
    """One capture's graph, its inputs, and its fake tensors.

    A fake stands for one Python tensor object: an operation that returns the very fake it was
    given returns the tensor that it was given.
    """

    def __init__(self, history: History | None = None) -> None:
        self.graph = Graph()
        self.history = history or History(dynamic=False)
        self.symbols: Any = None  # the Symbols of this capture, once there is one
        self.inputs: list[Value] = []
        self.world = FakeWorld()
        self.recall = Recall(self.world)
        self._by_fake: dict[int, TensorValue] = {}
        self._owners: dict[int, ArrayValue] = {}  # by the id of what owns their twins' memory
        self._last_input: Node | None = None
        self._undo: list[Callable[[], object]] = []
        self.late_errors = LateErrors(self.world.run)
        self._start_state: torch_state.State | None = None
        self.end_state: torch_state.State | None = None  # where the region ends, if it changed
        self.stays_eager = False  # it changes inputs in a way that functional backends do not know
        self.state_nodes = 0  # nodes that set grad mode and the like
        self.set_here: set[Any] = set()  # what the program set: the functions that read it
        self.contexts: dict[int, Any] = {}  # real guard objects, by the id of their value
        self.open_contexts: list[Any] = []

    # -- the life of a capture -------------------------------------------------------------------
    def enter_capture(self) -> None:
        """Called before the first instruction is traced."""
        self.world.hide()
        self._start_state = torch_state.current_state()

    def exit_capture(self) -> None:
        """Called when capture ends, however it ends: torch's state is again what it was."""
        if self.state_nodes and (state := torch_state.current_state()) != self._start_state:
            self.end_state = state
        while self._undo:
            self._undo.pop()()
        self.world.show()

    def release(self) -> None:
        """Let go of the user's tensors: capture is over."""
        self.inputs.clear()
        if self.symbols is not None:
            self.symbols.release()

    def when_capture_ends(self, undo: Callable[[], object]) -> None:
        """Note how to undo a change of torch's state that the traced program made."""
        self._undo.append(undo)

    def set_recording(self, enabled: bool) -> None:
        """Set grad mode for a moment, for operations that do not stay in the graph."""
        torch._C._set_grad_enabled(enabled)
        self.recall.state_changed()

    def add_state_node(
        self, t: Tracer, setter: Callable[..., Any], args: tuple[Any, ...], kwargs: Any = None
    ) -> Node:
        """A node that changes torch's state; it is no operation that the user wrote."""
        self.state_nodes += 1
        self.recall.state_changed()
        node = self.add_node(t, "call_function", setter, args, kwargs or {}, None)
        node.meta["sets_state"] = True
        return node

    ask = staticmethod(ask)  # for what a call in C asks of the classes of its operands

    # -- questions -------------------------------------------------------------------------------
    def owns(self, value: Value) -> bool:
        """Whether the value is a tensor whose class adds nothing."""
        return type(value) is TensorValue and value.cls in PLAIN_CLASSES

    def takes_binary(self, left: Value, right: Value) -> bool:
        """Whether an operator on these is an operation: a tensor and a tensor or number, or an
        array and what NumPy makes one of."""
        if type(left) is TensorValue and left.cls in PLAIN_CLASSES:
            return self.owns(right) or _is_number(right)
        if type(left) is ArrayValue or type(right) is ArrayValue:
            return takes(left) and takes(right)
        return self.owns(right) and _is_number(left)

    # -- tensors ---------------------------------------------------------------------------------
    def wrap(self, t: Tracer, real: Any, source: Source | None) -> Value:
        """A tensor from outside: a graph input, with its guard."""
        if not is_capturable(type(real)) or torch.nn.parameter.is_lazy(real):
            t.graph_break("tensor-subclass", f"a {type(real).__name__} is used")
        if torch_state.is_tracked(real):
            t.graph_break("function-transform", "a tensor that a transform recorded is used")
        with torch._C.DisableTorchFunctionSubclass():
            if real.layout is not torch.strided or real.is_quantized or real.is_nested:
                t.graph_break("tensor-layout", f"a tensor of layout {real.layout} is used")
        value = TensorValue(cast(Any, None), None, type(real), real, source=source)
        del value.node, value.fake
        value.later = functools.partial(self._take_in, t)
        if source is not None:
            t.guard("TypeIs", source, type(real))
        return value

    def _take_in(self, t: Tracer, value: TensorValue) -> None:
        """Make a tensor from outside an input of the graph, and guard what it looks like."""
        real, source = value.real, value.source
        with torch._C.DisableTorchFunctionSubclass():
            dims = self.history.dims(source, real)
            if source is not None and dims:
                value.fake = self._some_symbols().fake(real, source, dims)
            else:
                value.fake = self.world.of(real)
            if source is not None:
                t.guard("Tensor", source, *expected_of(real, value.fake))
        value.node = self._placeholder(source.name() if source is not None else "", value.fake)
        self._by_fake[id(value.fake)] = value
        self.inputs.append(value)
        self.late_errors.add_input(value.node)

    def wrap_array(self, t: Tracer, real: Any, source: Source | None) -> Value:
        """A NumPy array from outside: in the graph, the tensor over its memory."""
        if (why := unfit(real)) is not None:
            t.graph_break("numpy-array", f"an array is used that {why}")
        if source is not None:
            t.guard("Array", source, Ref(type(real)), *facts(real))
        with torch_state.as_outside():
            tensor = as_tensor(real)
        fake = self.world.of(tensor)
        node = self._placeholder(source.name() if source is not None else "", fake)
        self.inputs.append(MemoryValue(node, fake, torch.Tensor, tensor, source=source))
        self.late_errors.add_input(node)
        return self.array_of(node, fake, twin_of(real), real, source)

    def array_of(
        self, node: Node, fake: torch.Tensor, twin: Any, real: Any = None, source: Any = None
    ) -> ArrayValue:
        """The array or scalar that a node gave."""
        value = self._by_fake[id(fake)] = ArrayValue(
            node, fake, type(twin), real, twin=twin, source=source
        )
        self._owners.setdefault(id(root(twin)), value)
        return value

    def owner_of(self, value: ArrayValue) -> ArrayValue:
        """The array whose memory an array is a view of; itself if it is no view."""
        return self._owners[id(root(value.twin))] if issubclass(value.cls, np.ndarray) else value

    def wrap_number(self, real: int | float, source: Source) -> Value | None:
        """A number from outside, if it is to be a symbol."""
        if not self.history.varies(source, real):
            return None
        value: Value = self._some_symbols().number(real, source)
        return value

    def _some_symbols(self) -> Any:
        """The symbols of this capture; torch's machinery for them is loaded for the first."""
        if self.symbols is None:
            found = importlib.import_module("dynacap.values.tensor.symbols")
            self.symbols = found.Symbols(self.world, self._symbol_input, self.history.floats)
        return self.symbols

    def _symbol_input(self, value: SymbolValue, name: str) -> Node:
        self.inputs.append(value)
        return self._placeholder(name, value.sym)

    def _placeholder(self, wanted: str, fake: Any) -> Node:
        name = _NOT_IN_NAMES.sub("_", wanted).strip("_")
        graph = self.graph
        last = self._last_input
        with graph.inserting_after(last) if last is not None else graph.inserting_before():
            node = self._last_input = graph.placeholder(name or "constant")
        node.meta["example_value"] = fake
        return node

    def tensor_of(self, node: Node, fake: torch.Tensor) -> TensorValue:
        """The tensor that a fake stands for; ``node`` is the last that gave it."""
        known = self._by_fake.get(id(fake))
        if type(known) is TensorValue:
            known.node = node
            return known
        value = self._by_fake[id(fake)] = TensorValue(node, fake)
        return value

    def known_tensor(self, fake: Any) -> TensorValue | None:
        """The tensor or array that a fake stands for, if it is not new."""
        return self._by_fake.get(id(fake))

    # -- operations ------------------------------------------------------------------------------
    def call(self, t: Tracer, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Put a call into the graph, run it on fake tensors, give the result as a value."""
        if any(type(arg) is ArrayValue for arg in args):
            return operate(t, target, args, kwargs)
        name = method_name(target)
        if name is not None:
            return self.method(t, name, args, kwargs)
        return self.emit(t, "call_function", target, args, kwargs)

    def method(self, t: Tracer, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The same for a method of a tensor; ``args[0]`` is the tensor."""
        if name == "numpy":
            return to_array(t, args, kwargs)
        refusal = torch_refusals.of_method(name)
        if refusal is not None:
            t.graph_break(refusal, f"Tensor.{name} is called")
        if not args or type(args[0]) is not TensorValue:
            described = args[0].describe() if args else "nothing"
            t.graph_break("tensor-argument", f"Tensor.{name} is called on {described}")
        if name in torch_refusals.ELEMENTS:
            return read_elements(self, t, name, args[0])
        if name == "requires_grad_":
            return self._set_requires_grad(t, args, kwargs)
        if name == "detach_" and args[0].real is not None:
            t.graph_break("tensor-field-write", "detach_ of an argument")
        if name == "is_inference" and args[0].real is not None:
            t.graph_break("tensor-storage", "whether an argument is an inference tensor is asked")
        special = _SPECIAL_METHODS.get(name)
        if special is not None:
            return special(self, t, args)
        return self.emit(t, "call_method", name, args, kwargs)

    def _set_requires_grad(self, t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A compiled graph gives tensors, not changes of their flags: only no change stays."""
        wanted = [*args[1:], *kwargs.values()]
        flag = bool(wanted[0].constant()) if wanted else True
        if torch_state.transform_depth() and len(wanted) < 2:  # a level's own, soon over
            return self.emit(t, "call_method", "requires_grad_", args, kwargs)
        if len(wanted) > 1 or flag != args[0].fake.requires_grad:  # type: ignore[attr-defined]
            t.graph_break(
                "tensor-field-write", f"requires_grad of a {args[0].describe()} is changed"
            )
        return args[0]

    def emit(
        self, t: Tracer, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Run an operation on fakes and add its node, unless the result is static metadata."""
        node_args, fake_args = lower_all(t, args)
        node_kwargs, fake_kwargs = lower_keywords(t, kwargs) if kwargs else ({}, {})
        try:
            if target in METADATA:
                result = self._run(op, target, fake_args, fake_kwargs)
            else:
                result = self._result(t, Call(op, target, args, kwargs), fake_args, fake_kwargs)
        except GraphBreak:
            raise
        except Exception as error:
            t.graph_break(*torch_refusals.of_failure(target, error))
        if result is not None and not holds_tensors(result):
            if self.symbols is None or not holds_symbols(result):
                return static_value(t, result)
        node = self.add_node(t, op, target, tuple(node_args), node_kwargs, result)
        return wrap_result(t, self, node, result)

    def _result(self, t: Tracer, call: Call, fakes: list[Any], keywords: dict[str, Any]) -> Any:
        """What a call gives: from memory, or by running it."""
        recall = self.recall
        if writes(call):
            self.settle(t)
            fakes, keywords = lower_all(t, call.args)[1], lower_keywords(t, call.kwargs)[1]
            return self._run(call.op, call.target, fakes, keywords)
        key = recall.key(call)
        kept = recall.find(key, call, fakes, keywords)
        if kept is not None:
            return recall.make(kept, call)
        result = self._run(call.op, call.target, fakes, keywords)
        recall.keep(key, call, result)
        return result

    def _run(self, op: str, target: Any, fakes: list[Any], keywords: dict[str, Any]) -> Any:
        if op == "call_method":
            target, fakes = getattr(fakes[0], target), fakes[1:]
        try:
            return self.world.run(target, fakes, keywords)
        except (DataDependentOutputException, DynamicOutputShapeException):
            allowed = config.capture_scalar_outputs or config.capture_dynamic_output_shape_ops
            if self.symbols is not None or not allowed:
                raise
        self._some_symbols()
        return self.world.run(target, fakes, keywords)

    def settle(self, t: Tracer) -> None:
        """Have the fakes of views share the memory of their bases."""
        self.recall.settle(functools.partial(self._run_again, t), self._replace)

    def _run_again(self, t: Tracer, call: Call) -> Any:
        fakes, keywords = lower_all(t, call.args)[1], lower_keywords(t, call.kwargs)[1]
        with torch_state.outside_transforms():  # as it was: no memory is kept of what they track
            return self._run(call.op, call.target, fakes, keywords)

    def _replace(self, old: Any, new: Any) -> None:
        """Another fake stands for a tensor from now on."""
        value = self._by_fake.pop(id(old), None)
        if value is not None:
            value.fake = value.node.meta["example_value"] = new
            self._by_fake[id(new)] = value

    def emit_known(self, t: Tracer, target: Any, args: list[Value], result: Any) -> Value:
        """The value of a call whose result is known without running it."""
        return wrap_result(t, self, self.add_known(t, target, args, result), result)

    def add_known(self, t: Tracer, target: Any, args: list[Value], result: Any) -> Node:
        """The node of such a call."""
        node_args, _ = lower_all(t, args)
        return self.add_node(t, "call_function", target, tuple(node_args), {}, result)

    def add_node(
        self, t: Tracer, op: str, target: Any, args: Any, kwargs: dict[str, Any], result: Any
    ) -> Node:
        """A node at the end of the graph, with what it gives and the user's line."""
        node = self.graph.create_node(op, target, args, kwargs)
        node.meta["example_value"] = result
        node.meta["source_loc"] = t.location()
        node.meta["step"] = t.whole_steps
        self.late_errors.add(t, node)
        return node

    def drop_unused_items(self) -> None:
        """Take out the items of results that no one uses, as far as they cannot raise."""
        for node in reversed(self.graph.nodes):
            if node.users or node.op not in ("call_function", "call_method"):
                continue
            if is_symbolic(node) or (node.target is operator.getitem and not may_raise(node)):
                self.graph.erase_node(node)

    # -- attributes and items --------------------------------------------------------------------
    def read_field(self, t: Tracer, raw: Any, obj: Value) -> Value | None:
        """A C-level field of a tensor; None if ``obj`` is no tensor."""
        if type(obj) is not TensorValue:
            return None
        return fields.read_field(self, t, obj, raw.__name__)

    def set_attribute(self, t: Tracer, obj: Value, name: str, value: Value) -> None:
        """``tensor.name = value``; attributes of the user's own go to the instance dict."""
        assert isinstance(obj, TensorValue)
        if name in fields.FIELDS or hasattr(torch._C.TensorBase, name):
            fields.set_field(self, t, obj, name, value)
            return
        attrs = instance_dict(t, obj)
        assert attrs is not None
        attrs.set(t, name, Const(name), value)

    get_item = indexing.get_item
    set_item = indexing.set_item
    iterate = indexing.iterate

    def truth(self, t: Tracer, obj: Value) -> bool:
        """``bool(tensor)``: known only when the data are."""
        t.graph_break("data-dependent-branch", "the truth of a tensor decides which way to go")

    def assume(self, t: Tracer, obj: Value, expected: bool) -> bool:
        """Have the graph raise where ``bool(tensor)`` is not as expected.

        Not on other devices, where the error would come late and leave the device unusable.
        """
        assert isinstance(obj, TensorValue)
        if obj.fake.device.type != "cpu" or obj.fake.numel() != 1:
            return False
        self.late_errors.noticed = True  # however it goes, no error is one of the graph's alone
        asserted = obj if expected else self.call(t, torch.logical_not, [obj], {})
        message = Const("the program goes another way, and raises")
        self.call(t, torch._assert_async, [asserted, message], {})
        return True


def is_symbolic(node: Node) -> bool:
    """Whether a node computes sizes and numbers alone: no operation that the user wrote."""
    return holds_symbols(node.meta.get("example_value"))


def _is_operand(value: Value) -> bool:
    return type(value) in (TensorValue, ArrayValue) or _is_number(value)


def _is_number(value: Value) -> bool:
    return type(value) is SymbolValue or isinstance(payload_of(value), _NUMBERS)


def _operator_method(
    target: Callable[..., Any], swap: bool, family: TensorFamily, t: Tracer, args: list[Value]
) -> Value:
    if len(args) == 2 and not (_is_operand(args[0]) and _is_operand(args[1])):
        return Const(NotImplemented)
    operands = args[::-1] if swap else args
    return family.emit(t, "call_function", target, operands, {})


_SPECIAL_METHODS: dict[str, Callable[[TensorFamily, Tracer, list[Value]], Value]] = {
    **{n: functools.partial(_operator_method, f, False) for n, f in DUNDERS.items()},
    **{n: functools.partial(_operator_method, f, True) for n, f in REFLECTED.items()},
    "__getitem__": lambda family, t, args: family.get_item(t, *args),
    "__setitem__": lambda family, t, args: family.emit(
        t, "call_function", operator.setitem, args, {}
    ),
    "__len__": lambda family, t, args: indexing.length(t, args[0]),  # type: ignore[arg-type]
    "__iter__": lambda family, t, args: family.iterate(t, args[0]),
}

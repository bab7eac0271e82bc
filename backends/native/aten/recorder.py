"""Records the ATen operators that a graph comes to, on fake tensors.

This is the light way, for a graph that needs no gradient: one dispatch mode above the fake one,
without proxies and without functionalization's wrappers, at a small part of AOTAutograd's cost.
What the graph changes in place is taken apart by :class:`~.memory.Memory`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynacap.backends.native.aten.in_place import NotFunctional, functional_form, view_form
from dynacap.backends.native.aten.inputs import fake_like, refused
from dynacap.backends.native.aten.memory import Memory
from dynacap.backends.native.loops.program import check_number, is_symbolic, leaves
from dynacap.fxlite import Interpreter, Node

aten = torch.ops.aten
_NORM, _STATISTICS, _TRAINING = aten.native_batch_norm.default, slice(3, 5), 5
_LIFTS = (aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.lift.default)

Op = torch._ops.OpOverload
Decompositions = Mapping[Op, Callable[..., Any]]


class Recorder(TorchDispatchMode):
    """While entered, each operator that runs becomes a node of ``graph``."""

    def __init__(self, mode: FakeTensorMode, decompositions: Decompositions) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mode = mode
        self.graph = torch.fx.Graph()
        self.constants: dict[str, torch.Tensor] = {}
        self._constants: dict[int, torch.Tensor] = {}
        self.stack_trace: str | None = None  # of the user's line that runs
        self._numbers: dict[Any, torch.fx.Node] = {}  # floats that are given, by their symbols
        self._decompositions = decompositions
        self._memory = Memory(self._node)

    def placeholder(self, name: str, value: Any) -> None:
        """Note an input and the value that stands for it."""
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        if isinstance(value, torch.Tensor):
            self._memory.add_input(value, node)
        elif isinstance(value, torch.SymFloat):
            self._numbers[value.node.expr] = node

    @property
    def changes_inputs(self) -> bool:
        """Whether an input holds something else at the end."""
        return self._memory.changes_inputs

    def output(self, values: Iterable[Any]) -> None:
        """Write changed inputs back, and end the graph with what it returns."""
        self._memory.write_back()
        self.graph.output(tuple(map(self._returned, values)))
        if self.mode.shape_env is not None and self.mode.shape_env.replacements:
            for node in self.graph.nodes:
                node.args, node.kwargs = self._settled(node.args), self._settled(node.kwargs)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would wrap each call below in its own "disable", at some microseconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(type(value) is not FakeTensor for value in tensors_in((args, kwargs))):
            args, kwargs = self._with_constants(args), self._with_constants(kwargs)
            if func in _LIFTS:
                func = aten.clone.default
        decomposition = self._decompositions.get(func)
        if decomposition is not None:
            with self:
                result = decomposition(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is _NORM and args[_TRAINING] and args[_STATISTICS][0] is not None:
            return self._normalized(args)
        if func._schema.is_mutable:
            changed = self._turned if torch.Tag.inplace_view in func.tags else self._changed
            return changed(func, args, kwargs)
        return self._recorded(func, args, kwargs)

    def _normalized(self, args: tuple[Any, ...]) -> Any:
        """A normalization that changes its statistics, which its schema does not tell."""
        functional = aten._native_batch_norm_legit_functional.default
        *results, mean, var = self._recorded(functional, args, {})
        for statistic, new in zip(args[_STATISTICS], (mean, var), strict=True):
            self._memory.change(statistic, self._memory.node(new))
        return tuple(results)

    def _recorded(self, func: Op, args: Any, kwargs: Any) -> Any:
        result = self._result(func, args, kwargs)
        if func._schema.returns and next(tensors_in(result), None) is None:
            return result  # a size, a device: known from now on
        node = self._node(func, args, kwargs, result)
        if isinstance(result, torch.Tensor):
            self._memory.add(result, node)
        elif isinstance(result, tuple | list):
            for index, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    self._memory.add(item, self._node(operator.getitem, (node, index), {}, item))
        return result

    def _changed(self, func: Op, args: Any, kwargs: Any) -> Any:
        """An operator that changes its first argument: its functional form, and a change."""
        target: torch.Tensor = args[0]
        functional, args = functional_form(func, args)
        result = self._result(functional, args, kwargs)
        node = self._node(functional, args, kwargs, result)
        self._memory.change(target, node)
        return target

    def _turned(self, func: Op, args: Any, kwargs: Any) -> Any:
        """An operator that has its argument see the same memory otherwise: from now on that is a
        view of what it was."""
        target: torch.Tensor = args[0]
        view = view_form(func)
        self._memory.check_alone(target)
        self._keep_layout(target)
        node = self._node(view, args, kwargs, target)
        with enable_python_dispatcher():  # C++ crashes: sizes may vary
            self._result(func, args, kwargs)
        self._memory.turn(target, node)
        return target

    def _keep_layout(self, value: torch.Tensor) -> None:
        """Have the nodes that gave a tensor, alone or among others, or changed it, know it as it is
        now, whatever becomes of it."""
        now = fake_like(self.mode, value, value)

        def as_now(given: Any) -> Any:
            return now if given is value else mapped(as_now, given)

        for node in self.graph.nodes:
            node.meta["val"] = as_now(node.meta.get("val"))

    def _result(self, func: Op, args: Any, kwargs: Any) -> Any:
        """What an operator gives on fakes, which is the same for all floats: it is not told that
        they vary, so that it cannot ask which."""
        if self._numbers:
            args, kwargs = _of_now(args), _of_now(kwargs)
        try:
            return func(*args, **kwargs)
        except Exception as error:
            raise refused(error) from error

    def _with_constants(self, value: Any) -> Any:
        """The same with a fake tensor for each real one, which becomes a constant of the graph."""
        if isinstance(value, torch.Tensor):
            return value if type(value) is FakeTensor else self._constant(value)
        return mapped(self._with_constants, value)

    def _constant(self, value: torch.Tensor) -> torch.Tensor:
        if id(value) not in self._constants:
            name = f"constant_{len(self.constants)}"
            self.constants[name] = value
            fake = fake_like(self.mode, value, value)
            node = self.graph.create_node("get_attr", name, name=name)
            node.meta["val"] = fake
            self._memory.add_input(fake, node)
            self._constants[id(value)] = fake
        return self._constants[id(value)]

    def _node(self, func: Any, args: Any, kwargs: Any, value: Any) -> torch.fx.Node:
        node = self.graph.call_function(func, self._arguments(args), self._arguments(kwargs))
        node.meta["val"] = value
        if self.stack_trace is not None:
            node.meta["stack_trace"] = self.stack_trace
        return node

    def _arguments(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._memory.node(value)
        if isinstance(value, torch.SymFloat):
            return self._float(value)
        if isinstance(value, torch.SymInt | torch.SymBool):
            expression = value.node.expr
            return int(expression) if expression.is_Integer else expression
        return mapped(self._arguments, value)

    def _settled(self, value: Any) -> Any:
        """The same with sizes as they are known by the end: an operator may have fixed some."""
        if is_symbolic(value):
            assert self.mode.shape_env is not None
            size = self.mode.shape_env.replace(value)
            return int(size) if size.is_Integer else size
        return mapped(self._settled, value)

    def _float(self, value: torch.SymFloat) -> Any:
        """The input that gives a float, or the number that a question has fixed it to."""
        expression = value.node.expr
        if expression in self._numbers:
            return self._numbers[expression]
        if expression.is_number:
            return float(expression)
        raise NotFunctional("torch's algebra is not what Python computes of floats")

    def _returned(self, value: Any) -> Any:
        check_number(value)
        if isinstance(value, torch.Tensor):
            return self._memory.returned(value)
        return self._arguments(value)


class Replay(Interpreter):
    """Runs the captured graph under a recorder, and tells it whose line each node is."""

    def __init__(self, module: Any, recorder: Recorder) -> None:
        super().__init__(module)
        self._recorder = recorder

    def run_node(self, node: Node) -> Any:
        self._recorder.stack_trace = node.meta.get("stack_trace")
        return super().run_node(node)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return super().call_function(_WITH_CHECKS.get(target, target), args, kwargs)


def _one_hot(input: torch.Tensor, num_classes: Any = -1) -> torch.Tensor:
    """Torch looks at the data to refuse others than these classes, but not where it is traced."""
    if num_classes == 0:
        raise NotFunctional("one_hot of no classes")
    if num_classes < 0 or input.dtype is not torch.int64:
        return F.one_hot(input, num_classes)
    known = torch.arange(num_classes, device=input.device)
    looked_up = F.embedding(input, known.unsqueeze(1)).squeeze(-1)
    return (looked_up.unsqueeze(-1) == known).long()


_WITH_CHECKS: dict[Any, Callable[..., Any]] = {F.one_hot: _one_hot}


def _of_now(value: Any) -> Any:
    """The same with the number of the example for each float that varies."""
    return value.node.hint if isinstance(value, torch.SymFloat) else mapped(_of_now, value)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A list, tuple or dict with the function applied to each item; anything else as it is."""
    if isinstance(value, tuple | list):
        return type(value)(map(function, value))
    if isinstance(value, dict):
        return {name: function(item) for name, item in value.items()}
    return value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors at any depth of lists, tuples and dicts."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))

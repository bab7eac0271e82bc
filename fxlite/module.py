"""A graph with its attributes, callable: the source is compiled when it is first called."""

import builtins
import contextlib
import copy
import itertools
import linecache
import sys
import weakref
from collections.abc import Callable, Mapping
from traceback import walk_tb
from types import CodeType, MethodType, TracebackType
from typing import Any

from dynacap.fxlite import torch_interop
from dynacap.fxlite.attributes import Attributes, get_attribute, leaves
from dynacap.fxlite.codegen import PythonCode
from dynacap.fxlite.few_locals import generate_with_few_locals
from dynacap.fxlite.graph import Graph
from dynacap.fxlite.lint import lint_graph
from dynacap.fxlite.locations import RawLocation, point_at_user_line
from dynacap.fxlite.node import Node

_numbers = itertools.count()
_FILE = "<dynacap graph "
_CALLBACK = "__dynacap_point_at_user_line__"


class OnCall:
    """A graph's function, compiled when it is first called: what is only fallen back on seldom is.

    It holds the source and the attributes, but not the graph.
    """

    def __init__(self, code: PythonCode, attributes: Attributes) -> None:
        self._parts: tuple[PythonCode, Attributes] | None = (code, attributes)
        self._function: Callable[..., Any] | None = None
        self._told: list[Callable[[CodeType], object]] = []

    def function(self) -> Callable[..., Any]:
        """The function itself."""
        if self._function is None and self._parts is not None:
            made = _compile(*self._parts)
            self._function, self._parts = made, None
            for listener in self._told:
                listener(_code_of(made))
        assert self._function is not None
        return self._function

    def tell_code(self, listener: Callable[[CodeType], object]) -> None:
        """Have a function called with the code, now or once it is there."""
        if self._function is not None:
            listener(_code_of(self._function))
        else:
            self._told.append(listener)

    def is_same(self, function: object) -> bool:
        """Whether a function is this one."""
        return function is self or (function is not None and function is self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function()(*args, **kwargs)


def _code_of(function: Any) -> CodeType:
    code: CodeType = getattr(function, "__func__", function).__code__
    return code


class GraphModule:
    """What a backend gets: ``gm(*values)`` runs the graph, ``gm.graph`` says what it does.

    ``root`` gives the attributes that ``get_attr`` and ``call_module`` nodes name: a mapping from
    (dotted) names, or an object that has them.
    """

    def __init__(
        self, root: Mapping[str, object] | object, graph: Graph, name: str | None = None
    ) -> None:
        self._attributes = Attributes(_wanted(root, graph))
        self._graph = graph
        self._code: PythonCode | None = None
        self._on_call: OnCall | None = None
        self.name = name if name is not None else f"graph_{next(_numbers)}"
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph.  After a change in it, call :meth:`recompile`."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        self.recompile()

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by dotted name."""
        return dict(leaves(self._attributes))

    @property
    def code(self) -> str:
        """The graph as Python source, with a function ``forward(self, ...)``."""
        return self._python_code().source

    def line_of(self, node: Node) -> int:
        """In which line of the code a node runs."""
        return self._python_code().lines_of[node]

    @property
    def forward(self) -> Callable[..., Any]:
        """The compiled function; a plain one without ``self`` if it needs no attributes.

        It holds the attributes but neither this module nor the graph.
        """
        return self.on_call.function()

    @property
    def on_call(self) -> OnCall:
        """The same, compiled when it is first called."""
        if self._on_call is None:
            self._on_call = OnCall(self._python_code(), self._attributes)
        return self._on_call

    def by_position(self) -> Callable[..., Any]:
        """A function like :attr:`forward`, called with the placeholders' values and nothing else;
        its frame is small, however large the graph."""
        run = generate_with_few_locals(self._graph)
        if run is None:
            return self.forward
        return _compile(self._python_code(), self._attributes, run)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on the values of its placeholders."""
        return self.forward(*args, **kwargs)

    def recompile(self) -> None:
        """Take up changes of the graph; the function is compiled when it is next called."""
        self._code = None
        self._on_call = None

    def lint(self) -> None:
        """Check the graph, and that every attribute that it names is there."""
        lint_graph(self._graph, self._attributes)

    def print_readable(self, print_output: bool = True) -> str:
        """The source, printed and returned."""
        if print_output:
            print(self.code)
        return self.code

    def to_torch_fx(self) -> Any:
        """The same as a ``torch.fx.GraphModule``: names, order, arguments, meta, attributes."""
        return torch_interop.to_torch_fx(self)

    @classmethod
    def from_torch_fx(cls, torch_module: Any) -> "GraphModule":
        """The same as a given ``torch.fx.GraphModule``."""
        return torch_interop.from_torch_fx(torch_module, cls)

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("_attributes")
        if attributes is not None and name in vars(attributes):
            return getattr(attributes, name)
        raise AttributeError(f"graph module {self.__dict__.get('name')!r} has no {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        attributes = self.__dict__.get("_attributes")
        if attributes is not None and name in vars(attributes):
            setattr(attributes, name, value)
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<GraphModule {self.name}: {self._graph.node_count} nodes>"

    def __copy__(self) -> "GraphModule":
        return self._copied(copy.copy(self._graph), self.attributes)

    def __deepcopy__(self, memo: dict[int, Any]) -> "GraphModule":
        """Attributes are copied deeply; nodes are copied; their targets and meta are shared."""
        return self._copied(self._graph.__deepcopy__(memo), copy.deepcopy(self.attributes, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.attributes, self._graph, self.name)

    def _copied(self, graph: Graph, attributes: dict[str, Any]) -> "GraphModule":
        made = GraphModule(attributes, graph, self.name)
        made.meta = dict(self.meta)
        return made

    def _python_code(self) -> PythonCode:
        if self._code is None:
            self._code = self._graph.python_code()
        return self._code


def line_that_raised(traceback: TracebackType | None) -> int | None:
    """The line of the outermost graph in a traceback, that of :meth:`GraphModule.line_of`; None if
    no function of a graph ran, but what a backend made of it.
    """
    lines = (n for frame, n in walk_tb(traceback) if frame.f_code.co_filename.startswith(_FILE))
    return next(lines, None)


def _rebuilt(attributes: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    return GraphModule(attributes, graph, name)


def _wanted(root: Mapping[str, object] | object, graph: Graph) -> Mapping[str, object]:
    if isinstance(root, Mapping):
        return root
    return {
        str(node.target): get_attribute(root, str(node.target))
        for node in graph.nodes
        if node.op in ("get_attr", "call_module")
    }


def _compile(
    code: PythonCode, attributes: Attributes, run: PythonCode | None = None
) -> Callable[..., Any]:
    """The function of generated code.  Its lines can be seen in tracebacks while it lives.

    ``run`` runs instead where it is given: the same line for line, with other locals."""
    run = run or code
    filename = f"{_FILE}{next(_numbers)}>"
    namespace = {
        "__builtins__": builtins,
        "__name__": filename,
        _CALLBACK: _pointer(code.locations),
        **run.globals,
    }
    exec(compile(run.guarded(_CALLBACK), filename, "exec", dont_inherit=True), namespace)
    function: Any = namespace["forward"]
    lines = [line + "\n" for line in code.lines]
    linecache.cache[filename] = (len(lines), None, lines, filename)
    forget = weakref.finalize(function, linecache.cache.pop, filename, None)
    forget.atexit = False
    return MethodType(function, attributes) if code.uses_self else function


def _pointer(locations: list[RawLocation]) -> Callable[[BaseException], None]:
    def find(line: int) -> RawLocation:
        return locations[line - 1] if line <= len(locations) else None

    def point(error: BaseException) -> None:
        # Near the recursion limit there is no room for this; the traceback then stays as it was.
        with contextlib.suppress(RecursionError):
            point_at_user_line(error, sys._getframe(1), find)

    return point

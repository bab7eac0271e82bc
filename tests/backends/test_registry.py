"""Names of backends: who may take one, and how they are found."""

import importlib.metadata
import sys
from functools import partial
from typing import Any

import pytest

from dynacap.backends import (
    TorchBackend,
    backend_name,
    eager,
    interpreter,
    list_backends,
    lookup_backend,
    register_backend,
    registry,
)
from dynacap.errors import InvalidBackend, UserError
from dynacap.fxlite import GraphModule


def sample(graph_module: GraphModule, example_inputs: Any) -> Any:
    """A backend that others register and look up."""
    return graph_module.forward


def not_a_backend(graph_module: GraphModule, example_inputs: Any, **options: Any) -> Any:
    """Takes whatever options there are."""
    return partial(graph_module.forward, **options)


@pytest.fixture(autouse=True)
def _restored_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_tags", dict(registry._tags))


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> list[importlib.metadata.EntryPoint]:
    """Entry points as if installed."""
    points: list[importlib.metadata.EntryPoint] = []

    def select(**wanted: str) -> list[importlib.metadata.EntryPoint]:
        return [p for p in points if all(getattr(p, key) == value for key, value in wanted.items())]

    monkeypatch.setattr(importlib.metadata, "entry_points", select)
    return points


def test_as_decorator_and_as_call() -> None:
    @register_backend
    def plain(graph_module: GraphModule, example_inputs: Any) -> Any:
        return graph_module.forward

    @register_backend(name="other name", tags=["debug"])
    def named(graph_module: GraphModule, example_inputs: Any) -> Any:
        return graph_module.forward

    assert register_backend(sample) is sample
    assert register_backend(sample, name="again") is sample
    assert lookup_backend("plain") is plain
    assert lookup_backend("other name") is named
    assert lookup_backend("again") is lookup_backend("sample") is sample
    assert backend_name(named) == "other name"


def test_registering_twice() -> None:
    register_backend(sample)
    register_backend(sample)
    with pytest.raises(ValueError, match=r"name 'native' is taken by .*choose another"):
        register_backend(sample, name="native")
    with pytest.raises(ValueError, match=r"name 'sample' is taken by .*choose another"):
        register_backend(not_a_backend, name="sample")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "compiler_fn must be a callable.* got 3"),
        ((partial(sample),), "name must be a non-empty string, got None"),
        ((sample, ""), "name must be a non-empty string, got ''"),
        ((sample, 5), "name must be a non-empty string, got 5"),
    ],
)
def test_registering_something_else(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        register_backend(*arguments)


def test_own_backends_are_there() -> None:
    assert lookup_backend("eager") is eager
    assert lookup_backend("interpreter") is interpreter
    assert lookup_backend(sample) is sample


def test_list_leaves_tags_out() -> None:
    register_backend(sample, tags=("experimental",))
    assert {"eager", "interpreter"} <= set(list_backends())
    assert "sample" not in list_backends()
    assert "sample" in list_backends(exclude_tags=None)
    assert list_backends() == sorted(list_backends())


def test_unknown_names_and_wrong_types() -> None:
    with pytest.raises(InvalidBackend, match=r"backend='egaer' is not known; there are: .*eager"):
        lookup_backend("egaer")
    wrong: Any = 3
    with pytest.raises(TypeError, match=r"backend must be a name or a callable.* got 3"):
        lookup_backend(wrong)
    with pytest.raises(TypeError, match="mode must be a string or None, got 3"):
        lookup_backend("eager", mode=wrong)
    with pytest.raises(TypeError, match="options must be a mapping or None, got 3"):
        lookup_backend("eager", options=wrong)


def test_options_are_bound_or_refused() -> None:
    bound = lookup_backend(not_a_backend, mode="max", options={"a": 1})
    assert isinstance(bound, partial)
    assert bound.keywords == {"mode": "max", "options": {"a": 1}}
    assert backend_name(bound) == "not_a_backend"
    assert lookup_backend(sample, mode="default", options={}) is sample
    with pytest.raises(UserError, match="mode='max' was given, but backend 'sample' takes no mode"):
        lookup_backend(sample, mode="max")
    with pytest.raises(UserError, match=r"options=.*takes no options"):
        lookup_backend(sample, options={"a": 1})


def point(name: str, value: str, group: str) -> importlib.metadata.EntryPoint:
    return importlib.metadata.EntryPoint(name, value, group)


def test_entry_points(entry_points: list[importlib.metadata.EntryPoint]) -> None:
    sys.modules["entry_point_home"] = sys.modules[__name__]
    entry_points.append(point("installed", "entry_point_home:sample", registry.OWN_GROUP))
    entry_points.append(point("for torch", "entry_point_home:sample", registry.TORCH_GROUP))
    entry_points.append(point("broken", "no_such_module:x", registry.OWN_GROUP))
    assert "installed" in list_backends()
    assert lookup_backend("installed") is sample
    bridged = lookup_backend("for torch")
    assert isinstance(bridged, TorchBackend)
    assert bridged.compile_fn is sample
    with pytest.raises(InvalidBackend, match=r"'no_such_module:x'.*ModuleNotFoundError"):
        lookup_backend("broken")

"""Functions of torch that are no operations: modules, recurrent layers, sizes, torch._dynamo."""

from typing import Any

import torch
from torch import Tensor, nn

import dynacap
from dynacap.testing import Scenario, call, check_same, program, scenario

X = torch.arange(12.0).reshape(3, 4) - 5


@program((X,))
def test_sizes_as_tuples(x: Tensor) -> Any:
    s = x.shape
    sizes = s + (1,), s[1:], (2,) + s, s * 2, torch.Size([1, 2]), s.numel(), tuple(s)  # noqa: RUF005
    return sizes, [type(one).__name__ for one in sizes], repr(s), x.view(torch.Size([4, 3]))


@program((X,))
def test_dtypes_and_devices(x: Tensor) -> Any:
    d, t = x.device, x.dtype
    return (
        (d, d.type, d.index, str(d), torch.device("cpu", 0) == d, torch.device("meta").type),
        (
            t,
            t.is_floating_point,
            t.itemsize,
            str(t),
            torch.finfo(t).eps,
            torch.iinfo(torch.int8).max,
        ),
        x + 1,
    )


def test_recurrent_layers_are_whole() -> None:
    for make in (nn.LSTM, nn.GRU, nn.RNN):
        layer = make(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        outcome = check_same(layer, (X[None],), (X[None] + 1,), breaks=0)
        assert outcome.counters["graphs"] == 1


@scenario(breaks=None)
def test_weight_of_a_recurrent_layer_is_replaced() -> Scenario:
    layer = nn.GRU(4, 3)

    def before(i: int) -> None:
        if i == 1:
            layer.weight_hh_l0 = nn.Parameter(torch.ones(9, 3))

    def f(x: Tensor) -> Any:
        return layer(x)

    return Scenario(f, [call(X), call(X), call(X)], before=before)


@program((X,))
def test_labels_for_profilers(x: Tensor) -> Any:
    with torch.profiler.record_function("a label"):
        y = x * 2
    with torch._C.DisableTorchFunctionSubclass():
        return y + 1


def test_hints_for_torch_compile_are_understood() -> None:
    def f(x: Tensor) -> Any:
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static_address(x)
        y = x + 1 if torch._dynamo.is_compiling() else x - 1
        torch._dynamo.graph_break()
        return y * 2

    compiled = dynacap.compile(f, backend="eager")
    before = dynacap.counters()["breaks"]
    torch.testing.assert_close(compiled(X), (X + 1) * 2)
    assert dynacap.counters()["breaks"] == before + 1


@scenario(breaks=0)
def test_hook_added_to_a_module_and_to_all() -> Scenario:
    inner = nn.Linear(4, 2)
    handles: list[Any] = []

    def double(module: nn.Module, args: Any, result: Tensor) -> Tensor:
        return result * 2

    def before(i: int) -> None:
        if i == 1:
            handles.append(inner.register_forward_hook(double))
        elif i == 2:
            handles.append(nn.modules.module.register_module_forward_hook(double))
        elif i == 3:
            for handle in handles:
                handle.remove()

    def f(x: Tensor) -> Any:
        return inner(x) + 1

    return Scenario(f, [call(X)] * 4, before=before)


@program((X, nn.Linear(4, 2, bias=False)))
def test_attributes_that_a_module_lacks(x: Tensor, module: nn.Module) -> Any:
    try:
        module.nothing  # noqa: B018
    except AttributeError as error:
        text = str(error)
    return hasattr(module, "weight"), hasattr(module, "other"), module.bias is None, text, x * 1


def test_distributions_by_logits() -> None:
    """Their checks ask the class for a lazy property, which makes one."""

    def act(logits: Tensor) -> Any:
        chosen = torch.distributions.Categorical(logits=logits)
        action = chosen.sample()
        lazy = torch.distributions.Categorical.probs
        kinds = type(lazy).__name__, isinstance(lazy, property)
        return action, chosen.log_prob(action), chosen.entropy(), chosen.probs, kinds

    check_same(act, (X,), (X[:2],), breaks=0)


def test_packed_sequences() -> None:
    """Kernels that ask for memory run between graphs, and the reason says that they work there."""

    def packed(rnn: nn.GRU, x: Tensor, lengths: Tensor) -> Tensor:
        given = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(rnn(given)[0], batch_first=True)[0] * 2

    rnn = nn.GRU(3, 4, batch_first=True)
    calls = [
        (rnn, torch.randn(2, 3, 3), torch.tensor([3, 2])),
        (rnn, torch.randn(2, 4, 3), torch.tensor([4, 1])),
    ]
    reasons = check_same(packed, *calls).reasons
    assert "no-fake-kernel: _pad_packed_sequence asks for the memory of its arguments" in reasons
    assert not any("\n" in reason or "fake-tensor-error" in reason for reason in reasons)

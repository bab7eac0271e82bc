"""Samples by which the C checker finds out where torch keeps a tensor's metadata."""

from typing import Any

from dynacap.guards import _fastcheck

NOTHING = (False, False, False)
Sample = tuple[object, ...]


def find_layout(torch: Any) -> tuple[bool, bool, bool]:
    """Whether keys, dimensions and requires_grad were found; what was not, torch is asked."""
    try:
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            return NOTHING
        with torch.inference_mode(False), torch.enable_grad():
            return _find(torch)
    except (AttributeError, RuntimeError):  # a torch that keeps its books in another way
        return NOTHING


def _find(torch: Any) -> tuple[bool, bool, bool]:
    def keys(tensor: Any) -> int:
        number: int = torch._C._dispatch_keys(tensor).raw_repr()
        return number

    tensors = _tensors(torch)
    if any(type(tensor) not in (torch.Tensor, torch.nn.Parameter) for tensor in tensors):
        return NOTHING
    groups: dict[object, int] = {}
    samples: list[Sample] = []
    for tensor in tensors:
        group = groups.setdefault((tensor.dtype, tensor.device, keys(tensor)), len(groups))
        dims = (tuple(tensor.shape), tuple(tensor.stride()))
        elements = (tensor.storage_offset(), tensor.numel())
        samples.append((tensor, tensor._cdata, keys(tensor), *dims, *elements, group))
    plain, negative, pairs, conjugate = tensors[:4]
    return _fastcheck.find_tensor_layout(
        tuple(samples), keys(negative) ^ keys(plain), keys(conjugate) ^ keys(pairs), _leaves(torch)
    )


def _tensors(torch: Any) -> list[Any]:
    """Tensors that differ in all that is looked for; the first four in the bits of the keys."""
    plain = torch.empty(2, device="cpu")
    pairs = torch.empty(2, dtype=torch.complex64, device="cpu")
    with torch.inference_mode():
        inference = torch.empty(2, device="cpu")
    return [
        plain,
        torch._neg_view(plain),
        pairs,
        pairs.conj(),
        pairs.conj().imag,
        torch.empty(2, device="meta"),
        torch.nn.Parameter(torch.empty(2, device="cpu")),
        inference,
        torch.empty((), device="cpu"),
        torch.empty((0, 3), device="cpu"),
        torch.empty((4, 6, 5), device="cpu", dtype=torch.float64).transpose(0, 2),
        torch.empty(2000, device="cpu", dtype=torch.int8).as_strided(
            (2, 3, 5, 7, 4), (420, 141, 28, 4, 1), 17
        ),
        torch.empty((2, 3, 4, 5), device="cpu", dtype=torch.bool),
        torch.empty((3, 1), device="cpu", dtype=torch.uint8),
    ]


def _leaves(torch: Any) -> tuple[Any, Any, Any]:
    """Unknown to autograd; a leaf that requires grad, until the C module changes that; a result."""
    leaf, used = (torch.nn.Parameter(torch.empty(2, device="cpu")) for _ in range(2))
    return torch.empty(2, device="cpu"), leaf, used * 1

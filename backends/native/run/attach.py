"""The C extension, told where libtorch is and how it keeps tensors."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import torch

try:
    from dynacap.backends.native.run import _crun
except ImportError:  # dynacap was built without its C code
    _found: ModuleType | None = None
else:
    _found = _crun


@functools.cache
def extension() -> ModuleType | None:
    """The module that runs libraries; None if it is not built, or does not know this torch."""
    if _found is None:
        return None
    samples = (torch.empty(2), torch.nn.Parameter(torch.empty(3)), torch.arange(4), torch.empty(0))
    offset = _found.find_word(samples, tuple(sample._cdata for sample in samples))
    if offset < 0:
        return None
    folder = Path(torch.__file__).parent / "lib"
    names = [str(folder / f"lib{name}.so") for name in ("torch_cpu", "torch_python")]
    try:
        _found.attach(*names, torch.Tensor, offset)
    except ImportError:
        return None
    return _found

"""The C functions of libtorch that call one ATen operator each, without the dispatcher.

What they take is read from torch's own header, so that one whose signature is not what the
operator's schema says (a later version of it, say) is not called.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import torch

_HEADER = "include/torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h"
_FUNCTION = re.compile(r"AOTITorchError (aoti_torch_cpu_\w+)\(([^)]*)\)")
_NAME = re.compile(r"\s*\w+$")


@functools.cache
def shims() -> dict[str, tuple[str, ...]]:
    """The parameters' types of each shim; none where torch was installed without its headers."""
    path = Path(torch.__file__).parent / _HEADER
    if not path.exists():
        return {}
    return {
        name: tuple(_type(parameter) for parameter in parameters.split(","))
        for name, parameters in _FUNCTION.findall(path.read_text())
    }


def shim_name(target: torch._ops.OpOverload, overload: str | None = None) -> str:
    """What the shim of an operator is called, or of another overload of it, if it has one."""
    name = target._overloadname if overload is None else overload
    suffix = "" if name == "default" else f"_{name}"
    return f"aoti_torch_cpu_{target.overloadpacket.__name__}{suffix}"


def _type(parameter: str) -> str:
    return _NAME.sub("", parameter.strip())

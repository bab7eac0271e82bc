"""Writes a program that shows a difference, and needs nothing but the packages named in it."""

from __future__ import annotations

import base64
import io
import os
import platform
import sys
import tempfile
import textwrap
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from dynacap.backends.registry import backend_name, list_backends
from dynacap.backends.verify.reduce import Reduced
from dynacap.backends.verify.request import Verification
from dynacap.config import config
from dynacap.fxlite.names import qualified_name

INLINE_BYTES = 1 << 20  # stored inputs beyond this go to a file beside the program

_PROGRAM = '''\
"""{name} differs from eager under the backend {backend}.

{differences}

With {versions}; {after} of {before} operations are left.
"""

import torch

import dynacap
from dynacap.testing import check_same
{imports}

{graph}


{inputs}

torch.set_grad_enabled({grad})
check_same(
    forward,
    tuple(inputs),
    compile=lambda function: dynacap.compile({compile}),
)
'''

_INVENTED = '''\
def invented(seed, shape, stride, dtype, requires_grad, size):
    """Random numbers in that layout."""
    numbers = torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return numbers.as_strided(shape, stride).requires_grad_(requires_grad)
'''


def write_reproduction(
    small: Reduced, backend: Callable[..., Any], differences: Sequence[str]
) -> str:
    """Write the program to a file of its own, readable by the user only; its path."""
    folder = config.verify_folder or tempfile.gettempdir()
    os.makedirs(folder, exist_ok=True)
    handle, path = tempfile.mkstemp(".py", "dynacap_mismatch_", folder)
    with os.fdopen(handle, "w") as file:
        file.write(program(small, backend, differences, path.removesuffix(".py") + ".pt"))
    return path


def program(
    small: Reduced, backend: Callable[..., Any], differences: Sequence[str], data_path: str
) -> str:
    """The text of the program; inputs that are too large for it are saved at ``data_path``."""
    name, imports, compile_arguments = _backend(backend)
    code = small.graph_module.graph.python_code(self_name=None).source.rstrip()
    return _PROGRAM.format(
        name=small.graph_module.name,
        backend=name,
        differences="\n".join(_wrapped(line) for line in differences),
        versions=versions(),
        after=small.operations,
        before=small.before,
        imports=imports,
        graph=code.removeprefix("import torch\n").lstrip(),
        inputs=_inputs(small, data_path),
        grad=torch.is_grad_enabled(),
        compile=compile_arguments,
    )


def versions() -> str:
    """What the program was seen to fail with."""
    machine = f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"
    return f"torch {torch.__version__}, Python {sys.version.split()[0]}, {machine}"


def _wrapped(line: str) -> str:
    safe = line.replace("\\", "/").replace('"""', "'''")
    return textwrap.fill(safe, 96, initial_indent="- ", subsequent_indent="  ")


def _backend(backend: Any) -> tuple[str, str, str]:
    """The backend's name, the import that it needs, and the arguments of dynacap.compile."""
    extra = ""
    while isinstance(backend, partial):
        if isinstance(backend.func, Verification):
            backend = backend.args[0]
            continue
        extra += "".join(f", {key}={value!r}" for key, value in backend.keywords.items())
        backend = backend.func
    name = backend_name(backend)
    if name in list_backends(None):
        return repr(name), "", f"function, backend={name!r}{extra}"
    full = qualified_name(backend)
    if full is None:
        return repr(name), f"# put the backend {name!r} here", f"function, backend={name}{extra}"
    module, _, attribute = full.rpartition(".")
    imports = f"from {module} import {attribute}"
    return repr(name), imports, f"function, backend={attribute}{extra}"


def _inputs(small: Reduced, data_path: str) -> str:
    """The definition of the list ``inputs``."""
    if not small.invented:
        return _stored(list(small.inputs), "inputs", data_path)
    stored: dict[int, Any] = {}
    items = []
    for index, value in enumerate(small.inputs):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            size = value.untyped_storage().nbytes() // value.element_size()
            facts = f"{tuple(value.shape)}, {value.stride()}, {value.dtype}, {value.requires_grad}"
            items.append(f"    invented({index}, {facts}, {size}),")
        elif isinstance(value, torch.Tensor):
            stored[index] = value
            items.append(f"    stored[{index}],")
        else:
            items.append(f"    {value!r},")
    parts = [_INVENTED, ""]
    if stored:
        parts.append(_stored(stored, "stored", data_path))
    return "\n".join([*parts, "inputs = [", *items, "]"])


def _stored(values: Any, name: str, data_path: str) -> str:
    """Statements that load the values: from text in the program, or from a file."""
    buffer = io.BytesIO()
    torch.save(values, buffer)
    packed = zlib.compress(buffer.getvalue())
    if len(packed) > INLINE_BYTES:
        with open(os.open(data_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(buffer.getvalue())
        return f"{name} = torch.load({data_path!r}, weights_only=False)"
    lines = textwrap.wrap(base64.b64encode(packed).decode(), 92)
    text = "\n".join(f'    "{line}"' for line in lines)
    return (
        "import base64, io, zlib\n\n"
        f"DATA = (\n{text}\n)\n"
        f"{name} = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(DATA))),"
        " weights_only=False)"
    )

"""Staying out of the way of ``torch.compile``, which may be what calls compiled code."""

from __future__ import annotations

from types import CodeType

import torch

_eval_frame = torch._C._dynamo.eval_frame  # the C part, which is there without torch._dynamo
set_eval_frame = _eval_frame.set_eval_frame
_DEFAULT = _eval_frame._FrameAction.DEFAULT
_SKIP = _eval_frame._FrameExecStrategy(_eval_frame._FrameAction.SKIP, _DEFAULT)


# What compiles the backward half of a graph when it is first wanted, in whoever goes backward.
_LATE_COMPILER = "_AutogradBackwardCompiler.get_or_compile"


def compiles_late(code: CodeType) -> bool:
    """Whether nothing that runs below is the user's program, but a compiler of torch's."""
    return code.co_qualname == _LATE_COMPILER


def skip_code(code: CodeType) -> None:
    """Have ``torch.compile`` run frames of this code as they are."""
    _eval_frame.set_code_exec_strategy(code, _SKIP)

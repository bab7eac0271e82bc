"""Staying out of the way of ``torch.compile``, which may be what calls compiled code."""

from __future__ import annotations

from types import CodeType

import torch

_eval_frame = torch._C._dynamo.eval_frame  # the C part, which is there without torch._dynamo
set_eval_frame = _eval_frame.set_eval_frame
_DEFAULT = _eval_frame._FrameAction.DEFAULT
_SKIP = _eval_frame._FrameExecStrategy(_eval_frame._FrameAction.SKIP, _DEFAULT)


def skip_code(code: CodeType) -> None:
    """Have ``torch.compile`` run frames of this code as they are."""
    _eval_frame.set_code_exec_strategy(code, _SKIP)

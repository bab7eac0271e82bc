"""Operators that are taken apart before lowering sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable[..., Any]] = {}

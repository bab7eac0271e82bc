"""Regular expressions on constant text; patterns and matches never change."""

from __future__ import annotations

import re

from dynacap.values.build import build_known, builds
from dynacap.values.data_model.calls import folds
from dynacap.values.natives import pure

builds(re.Pattern, re.Match)(build_known)
pure(
    member
    for kind in (re.Pattern, re.Match)
    for name, member in vars(kind).items()
    if callable(member) and name not in ("finditer", "scanner", "__class_getitem__")
)


folds(
    *(
        getattr(re, name)
        for name in "compile match search fullmatch findall split sub subn escape".split()
    )
)

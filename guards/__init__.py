"""What must hold for a compiled graph to be reused, and the checkers that see to it."""

if __name__ != "dynacap.guards":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.guards, not as guards")

from dynacap.guards.choose import make_checker, make_table
from dynacap.guards.explain import Failure, failures
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.kinds import (
    ClassLacks,
    ConstEq,
    DictKeys,
    Guard,
    HasKey,
    IdIs,
    LacksKey,
    Length,
    Origin,
    SetEq,
    TypeIs,
)
from dynacap.guards.process_state import ProcessState
from dynacap.guards.protocol import Checker, Entry, EntryTable
from dynacap.guards.relations import NoOverlap, NotAliased, Overlap, Predicate, SameObject, Sizes
from dynacap.guards.source import (
    Attr,
    CellContents,
    ClassAttr,
    ClosureCell,
    Const,
    DequeItem,
    DictItem,
    DictKey,
    FunctionBuiltins,
    FunctionDefault,
    FunctionGlobals,
    InstanceDict,
    Local,
    SeqItem,
    Source,
    SuperAttr,
    SysModule,
    TypeOf,
)
from dynacap.guards.tensor_kind import Tensor

__all__ = [
    "Attr",
    "CellContents",
    "Checker",
    "ClassAttr",
    "ClassLacks",
    "ClosureCell",
    "Const",
    "ConstEq",
    "DequeItem",
    "DictItem",
    "DictKey",
    "DictKeys",
    "Entry",
    "EntryTable",
    "Failure",
    "FunctionBuiltins",
    "FunctionDefault",
    "FunctionGlobals",
    "Guard",
    "GuardSet",
    "HasKey",
    "IdIs",
    "InstanceDict",
    "LacksKey",
    "Length",
    "Local",
    "NoOverlap",
    "NotAliased",
    "Origin",
    "Overlap",
    "Predicate",
    "ProcessState",
    "SameObject",
    "SeqItem",
    "SetEq",
    "Sizes",
    "Source",
    "SuperAttr",
    "SysModule",
    "Tensor",
    "TypeIs",
    "TypeOf",
    "failures",
    "make_checker",
    "make_table",
]

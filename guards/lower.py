"""From guards to the program that the C checker walks (``program.h``).

Three things happen on the way, none of which changes what is checked:

- *Sharing.*  A source that is guarded to be one object (``IdIs``, or the type of a source that is
  guarded by ``TypeIs``) leads to the same place wherever it stands, so all that hangs below such
  sources hangs below one root.  Four hundred layers of one class share one walk over the class.
- *Order.*  Arguments first, tensors among them before all else, since those tell most entries
  apart.  Below a dict or class, the children whose checks cannot change while the dict or class
  does not come first, so that a walk can skip them.
- *Registers.*  A value that others need is kept in a register; those that hold a reference are
  numbered in the order of the walk.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from dynacap.guards import (
    caches,
    generators,
    iterators,
    kinds,
    process_state,
    relations,
    tensor_kind,
    thread_local,
)
from dynacap.guards.constant import ConstKey
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.kinds import Guard
from dynacap.guards.plan import ROOT, Plan
from dynacap.guards.raw import IMMUTABLE_TYPE, MISSING, type_flags
from dynacap.guards.ref import Ref
from dynacap.guards.size_program import Instruction, write_program
from dynacap.guards.source import Source
from dynacap.guards.tensor_lowering import is_plain, lower_state, tensor_spec
from dynacap.guards.tensor_source import TensorNumber, read_number

Operand = tuple[str, object]
Check = tuple[str, Operand | None, int, tuple[Operand, ...]]


@dataclass(eq=False, slots=True)
class Draft:
    """A node on its way into the program."""

    step: str
    key: Any
    base: "Draft | None"
    checks: list[Check] = field(default_factory=list)
    is_tensor: bool = False
    children: list["Draft"] = field(default_factory=list)
    asked_for: bool = False  # by a slot or a relation
    is_tuple: bool = False  # guarded to be one: its items stay as they are
    reg: int = -1
    fixed: bool = False


def operand(ref: object) -> Operand:
    """An object to compare with, in the form that the C checker takes."""
    if type(ref) is Ref:
        return ("identity", ref.get()) if ref.strong else ("weakref", ref.weak())
    if type(ref) is ConstKey:
        return ("value", ref.value)
    return ("string", ref)


# Checks, by guard kind.


def _type_is(guard: kinds.TypeIs) -> Check:
    return ("type", operand(guard.expected), 0, ())


def _id_is(guard: kinds.IdIs) -> Check:
    return ("identity", operand(guard.expected), 0, ())


def _const_eq(guard: kinds.ConstEq) -> Check:
    if not _comparable_in_c(guard.value):
        return _call(guard)
    return ("constant", ("value", guard.value), 0, ())


def _comparable_in_c(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_comparable_in_c, value))
    if type(value) is slice:
        return all(map(_comparable_in_c, (value.start, value.stop, value.step)))
    return type(value) not in (frozenset, range) and not hasattr(type(value), "__array_priority__")


def _length(guard: kinds.Length) -> Check:
    return ("length", None, guard.length, ())


def _keys(guard: kinds.DictKeys) -> Check:
    # The operand serves for what keeps an order that is not that of its storage.
    return ("keys", ("identity", guard.holds), 0, tuple(map(operand, guard.keys)))


def _has(guard: kinds.HasKey) -> Check:
    return ("has", operand(guard.key), 0, ())


def _lacks(guard: kinds.LacksKey) -> Check:
    if type(guard.key) is ConstKey:
        return _call(guard)
    return ("lacks", operand(guard.key), 0, ())


def _class_lacks(guard: kinds.ClassLacks) -> Check:
    return ("class_lacks", operand(guard.attribute), 0, ())


def _call(guard: Guard) -> Check:
    return ("call", ("identity", guard.holds), 0, ())


_CHECKS: dict[type[Guard], Callable[[Any], Check]] = {
    kinds.TypeIs: _type_is,
    kinds.IdIs: _id_is,
    kinds.ConstEq: _const_eq,
    kinds.Length: _length,
    kinds.DictKeys: _keys,
    kinds.HasKey: _has,
    kinds.LacksKey: _lacks,
    kinds.ClassLacks: _class_lacks,
}

# Checks of what a dict or class has, which its tag vouches for.  (A length is as quick as a tag.)
_CONTENT_CHECKS = frozenset({"keys", "has", "lacks", "class_lacks"})
_RUNS_CODE = frozenset({"call", "keys", "tensor"})


def _depends_on_object_alone(check: Check) -> bool:
    """Whether the check always gives the same answer for one and the same object."""
    kind, wanted = check[0], check[1]
    if kind == "type":
        # An object can be given another class only if both are of class statements, or modules.
        cls = wanted[1] if wanted is not None and wanted[0] == "identity" else None
        return cls is not None and cls is not ModuleType and bool(type_flags(cls) & IMMUTABLE_TYPE)
    return kind in ("identity", "constant")


# Steps whose result stays the same as long as the object does.
_FIXED_STEPS = frozenset({"function_globals", "function_builtins", "closure_cell"})
_SKIPPABLE_STEPS = frozenset({"dict_item", "class_attr", "super_attr"})
_READ_BY_PYTHON = {
    cls.op: cls for cls in (*iterators.READS, *generators.READS, *caches.READS, *thread_local.READS)
}
_NAMED_STEPS = frozenset({"attr", "class_attr", "super_attr"})
_INDEXED_STEPS = frozenset(
    {"local", "closure_cell", "function_default", "seq_item", "deque_item", "dict_key"}
)


class _Tree:
    """The drafts, made from a plan; sources that are guarded to be one object share theirs."""

    def __init__(self, plan: Plan, tensors_in_c: bool) -> None:
        self._plan = plan
        self._tensors_in_c = tensors_in_c
        self._known: dict[tuple[object, ...], Draft] = {}
        self.roots: list[Draft] = []
        self.tensors: list[tensor_kind.Tensor] = []
        self.drafts: list[Draft] = []  # of the plan's nodes, in the plan's order
        self._one_object: dict[int, Ref] = {}
        for position, node in enumerate(plan.nodes):
            self.drafts.append(self._draft_for(node.source, node.base))
            self._enter_guards(position, node.guards)

    def _draft_for(self, source: Source, base: int) -> Draft:
        if base == ROOT:
            return self._draft(source.op, source.key, None)
        if source.op == "type_of":
            known = self._guarded_type(base)
            if known is not None:
                return self._constant(known)
        return self._draft(source.op, source.key, self._place_below(base))

    def _guarded_type(self, position: int) -> Ref | None:
        for guard in self._plan.nodes[position].guards:
            if type(guard) is kinds.TypeIs:
                return guard.expected
        return None

    def _place_below(self, position: int) -> Draft:
        """Where the children of a node hang: below the node, or below the object it must be."""
        known = self._one_object.get(position)
        return self.drafts[position] if known is None else self._constant(known)

    def all(self) -> list[Draft]:
        """Every draft, behind its base."""
        return list(self._known.values())

    def _constant(self, ref: Ref) -> Draft:
        return self._draft("const", ref, None)

    def _draft(self, step: str, key: Any, base: Draft | None) -> Draft:
        place = (step, key, type(key), None if base is None else id(base))
        draft = self._known.get(place)
        if draft is None:
            draft = self._known[place] = Draft(step, key, base)
            (self.roots if base is None else base.children).append(draft)
        return draft

    def _check(self, guard: Guard) -> Check:
        if self._tensors_in_c and type(guard) is tensor_kind.Tensor and is_plain(guard):
            self.tensors.append(guard)
            return ("tensor", None, len(self.tensors) - 1, ())
        return _CHECKS.get(type(guard), _call)(guard)

    def _enter_guards(self, position: int, guards: Sequence[Guard]) -> None:
        draft = self.drafts[position]
        for guard in guards:
            draft.is_tensor |= type(guard) is tensor_kind.Tensor
            if type(guard) is kinds.IdIs and not guard.expected.dead:
                self._one_object[position] = guard.expected
            draft.is_tuple |= type(guard) is kinds.TypeIs and guard.expected.get() is tuple
            check = self._check(guard)
            if check not in draft.checks:
                draft.checks.append(check)


def _mark_fixed(drafts: Sequence[Draft]) -> None:
    """Mark those that, with all below them, cannot change while the value is the same object.

    Each draft stands behind its base, so from the end all below a draft is marked before it.
    """
    for draft in reversed(drafts):
        draft.fixed = (
            not draft.asked_for
            and all(map(_depends_on_object_alone, draft.checks))
            and all(child.fixed and _stays(draft, child.step) for child in draft.children)
        )


def _stays(draft: Draft, step: str) -> bool:
    """Whether a step from one and the same object always gives the same value."""
    return step in _FIXED_STEPS or (step == "seq_item" and draft.is_tuple)


class _Layout:
    """The nodes in order, their checks, and registers."""

    def __init__(self) -> None:
        self.nodes: list[tuple[object, ...]] = []
        self.checks: list[Check] = []
        self.owned = 0
        self._unowned: list[int] = []  # positions of the nodes with registers of the other sort

    def place(self, draft: Draft) -> None:
        """Lay out a draft and what is below it, in the order of the walk."""
        pending: list[Draft | Callable[[], None]] = [draft]
        while pending:
            item = pending.pop()
            if isinstance(item, Draft):
                pending.extend(reversed(list(self._expand(item))))
            else:
                item()

    def _expand(self, draft: Draft) -> Iterator["Draft | Callable[[], None]"]:
        """Lay one draft out; what comes behind it."""
        position = len(self.nodes)
        self._lay(draft)
        skippable = [c for c in draft.children if c.fixed and c.step in _SKIPPABLE_STEPS]
        others = [c for c in draft.children if not (c.fixed and c.step in _SKIPPABLE_STEPS)]
        yield from skippable
        contents = any(check[0] in _CONTENT_CHECKS for check in draft.checks)
        if skippable or contents:
            yield lambda: self._remember(draft, position)
        yield from others

    def _lay(self, draft: Draft) -> None:
        always = [c for c in draft.checks if c[0] not in _CONTENT_CHECKS]
        contents = [c for c in draft.checks if c[0] in _CONTENT_CHECKS]
        first = len(self.checks)
        self.checks += always + contents
        kept = bool(draft.children or draft.asked_for or contents)
        runs_code = any(check[0] in _RUNS_CODE for check in draft.checks)
        kept |= runs_code
        owned = kept and not draft.fixed
        if owned:
            draft.reg = self.owned
            self.owned += 1
        elif kept:
            draft.reg = len(self._unowned)  # moved behind the owned ones at the end
            self._unowned.append(len(self.nodes))
        base = draft.base
        self.nodes.append(
            (
                "call" if draft.step in _READ_BY_PYTHON else draft.step,
                -1 if base is None else (base.reg, base.fixed),
                draft.reg,
                owned,
                0,
                first,
                first + len(always),
                len(self.checks),
                _index(draft),
                _key_operand(draft),
                _attribute_name(draft),
            )
        )

    def _remember(self, draft: Draft, position: int) -> None:
        at = len(self.nodes)
        none = len(self.checks)
        base = (draft.reg, draft.fixed)
        self.nodes.append(("remember", base, -1, False, 0, none, none, none, position, None, None))
        before = self.nodes[position]
        self.nodes[position] = (*before[:4], at + 1, *before[5:])

    def finished_nodes(self) -> tuple[tuple[object, ...], ...]:
        """The nodes, with registers of the unowned sort behind the others."""
        return tuple(self._finish(node) for node in self.nodes)

    def _finish(self, node: tuple[Any, ...]) -> tuple[object, ...]:
        step, base, reg, owned, *rest = node
        if base != -1:
            base = base[0] + (self.owned if base[1] else 0)
        if reg >= 0 and not owned:
            reg += self.owned
        return (step, base, reg, owned, *rest)

    @property
    def registers(self) -> int:
        """How many registers there are."""
        return self.owned + len(self._unowned)


def _index(draft: Draft) -> int:
    if draft.step == TensorNumber.op:
        dim: int = draft.key[1]
        return dim
    return draft.key if draft.step in _INDEXED_STEPS else 0


def _key_operand(draft: Draft) -> Operand | None:
    if draft.step == "const":
        return operand(draft.key) if type(draft.key) is Ref else ("identity", draft.key.obj)
    if draft.step in ("dict_item", "sys_module"):
        return operand(draft.key)
    if draft.step in _READ_BY_PYTHON:
        return "identity", partial(_read, _READ_BY_PYTHON[draft.step].take, draft.key)
    if draft.step == TensorNumber.op:
        return "identity", partial(_read, _take_number, draft.key)
    return operand(draft.key[0]) if draft.step == "super_attr" else None


def _read(take: Callable[[Any, Any], Any], key: Any, value: object) -> tuple[object, ...]:
    """What such a source reads, in the form that the C checker takes."""
    found = take(value, key)
    return () if found is MISSING else (found,)


def _take_number(value: object, key: tuple[str, int]) -> object:
    return read_number(value, *key)


def _attribute_name(draft: Draft) -> str | None:
    if draft.step == TensorNumber.op:
        return str(draft.key[0])
    if draft.step not in _NAMED_STEPS:
        return None
    name: str = draft.key[1] if draft.step == "super_attr" else draft.key
    return name


def _relation(relation: relations.SameObject | Guard, regs: tuple[int, ...]) -> tuple[object, ...]:
    kind = "call"
    sizes: tuple[Instruction, ...] = ()
    if type(relation) is relations.Sizes:
        sizes = write_program([text for text, _ in relation.conditions])
        kind = "sizes" if sizes else "call"
    elif type(relation) is relations.SameObject:
        kind = "same"
    elif type(relation) is relations.NotAliased:
        kind = "distinct"
    elif type(relation) is relations.Overlap and not relation.pattern:
        kind = "apart"
    return (kind, regs, relation.holds, sizes)


def _state(plan: Plan) -> tuple[tuple[process_state.Question, ...], tuple[object, ...]]:
    """Questions that take the place of the first state guard, and the tests of all others."""
    for guard in plan.state:
        asked = guard.questions() if type(guard) is process_state.ProcessState else None
        if asked is not None:
            return asked, tuple(other.holds for other in plan.state if other is not guard)
    return (), tuple(guard.holds for guard in plan.state)


def _telling(root: Draft) -> int:
    """Where a root stands in the order of the walk: what tells most entries apart comes first."""
    if root.step != "local" or root.children:
        return 2
    return 0 if root.is_tensor else 1


def lower(guards: GuardSet, slots: Sequence[Source]) -> dict[str, object]:
    """The description of a program that the C checker is made from."""
    plan = Plan(guards, slots)
    asked, tests = _state(plan)
    # Reading a tensor's fields runs the code of a function mode, if there is one.  The questions
    # about the state, which come first, see to it that there is none.
    tree = _Tree(plan, tensors_in_c=bool(asked))
    for position in (*plan.slots, *(n for r in plan.relations for n in r.nodes)):
        tree.drafts[position].asked_for = True
    _mark_fixed(tree.all())
    layout = _Layout()
    for root in sorted(tree.roots, key=_telling):
        layout.place(root)
    return {
        "nodes": layout.finished_nodes(),
        "checks": tuple(layout.checks),
        "relations": tuple(
            _relation(r.guard, tuple(tree.drafts[n].reg for n in r.nodes)) for r in plan.relations
        ),
        "tensors": tuple(map(tensor_spec, tree.tensors)),
        "state": lower_state(asked, tests),
        "slots": tuple(tree.drafts[n].reg for n in plan.slots),
        "registers": (layout.owned, layout.registers),
    }

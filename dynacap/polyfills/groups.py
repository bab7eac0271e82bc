"""Exception groups: how they are split, and what ``except*`` raises in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacap.values.natives import polyfill

Split = tuple[Any, Any]
_MESSAGE: Any = BaseExceptionGroup.message  # whatever a subclass shows under that name
_PARTS: Any = BaseExceptionGroup.exceptions
try:
    ExceptionGroup("", [ValueError()]).split(3)  # type: ignore[call-overload]
except TypeError as error:
    _WANTED = str(error)
_ANY_CALLABLE = "callable" in _WANTED  # else functions only


def _listed(kinds: Any) -> Any:
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _are_classes(kinds: Any) -> bool:
    return all(isinstance(kind, type) and BaseException in kind.__mro__ for kind in _listed(kinds))


def _is_one_of(kinds: Any, cls: type) -> bool:
    """As ``except`` asks: by the classes as they are, whatever they say of instances."""
    return any(kind in cls.__mro__ for kind in _listed(kinds))


def _matcher(kinds: Any) -> Callable[[BaseException], Any]:
    if _are_classes(kinds):
        return lambda exc: _is_one_of(kinds, type(exc))
    is_function = type(kinds) is type(_matcher) or (_ANY_CALLABLE and callable(kinds))
    if isinstance(kinds, type) or not is_function:
        raise TypeError(_WANTED)
    return kinds  # type: ignore[no-any-return]


@polyfill(BaseExceptionGroup.derive)
def derive(self: Any, excs: Any, /) -> Any:
    """A group of the same message."""
    return BaseExceptionGroup(_MESSAGE.__get__(self), excs)


@polyfill(BaseExceptionGroup.split)
def split(self: Any, matcher: Any, /) -> Split:
    """The parts of a group that match and that do not."""
    return _split(self, _matcher(matcher), True)


@polyfill(BaseExceptionGroup.subgroup)
def subgroup(self: Any, matcher: Any, /) -> Any:
    """The part of a group that matches."""
    return _split(self, _matcher(matcher), False)[0]


def _split(exc: Any, matches: Callable[[BaseException], Any], keep_rest: bool) -> Split:
    if matches(exc):
        return exc, None
    if not isinstance(exc, BaseExceptionGroup):
        return None, exc
    pairs = [_split(each, matches, keep_rest) for each in _PARTS.__get__(exc)]
    match = _subset(exc, [match for match, _ in pairs if match is not None])
    return match, _subset(exc, [rest for _, rest in pairs if rest is not None] if keep_rest else [])


def _subset(group: Any, parts: list[Any]) -> Any:
    """A group like another, of some of its parts."""
    if not parts:
        return None
    made = group.derive(parts)
    if not isinstance(made, BaseExceptionGroup):
        raise TypeError("derive must return an instance of BaseExceptionGroup")
    if group.__traceback__ is not None:
        made.__traceback__ = group.__traceback__
    made.__context__ = group.__context__
    made.__cause__ = group.__cause__
    notes: Any = getattr(group, "__notes__", None)
    if hasattr(type(notes), "__getitem__") and not isinstance(notes, dict):
        made.__notes__ = list(notes)
    return made


def match_star(exc: Any, kinds: Any) -> Split:
    """What an ``except*`` clause for some classes takes of an exception, and what it leaves."""
    if not _are_classes(kinds):
        text = "catching classes that do not inherit from BaseException is not allowed"
        raise TypeError(text)
    if any(BaseExceptionGroup in kind.__mro__ for kind in _listed(kinds)):
        text = "catching ExceptionGroup with except* is not allowed. Use except instead."
        raise TypeError(text)
    is_group = isinstance(exc, BaseExceptionGroup)
    if exc is not None and _is_one_of(kinds, type(exc)):
        return (exc if is_group else BaseExceptionGroup("", (exc,))), None
    if not is_group:
        return None, exc
    pair = exc.split(kinds)
    if not isinstance(pair, tuple) or len(pair) < 2:
        what = f"2-tuple, got tuple of size {len(pair)}" if isinstance(pair, tuple) else ""
        what = what or f"tuple, not {type(pair).__name__}"
        raise TypeError(f"{type(exc).__name__}.split must return a {what}")
    return pair[0], pair[1]


def raise_star(caught: Any, raised: list[Any]) -> Any:
    """What is raised behind the clauses: ``raised``: what each raised or left, or None."""
    if not raised or not isinstance(caught, BaseExceptionGroup):
        return raised[0] if raised else None
    left = [each for each in raised if each is not None]
    same = [leaf for each in left if _is_part(each, caught) for leaf in _leaves(each)]
    new = [each for each in left if not _is_part(each, caught)]
    kept = _split(caught, lambda exc: any(exc is leaf for leaf in same), False)[0]
    if kept is not None:
        new.append(kept)
    return BaseExceptionGroup("", new) if len(new) > 1 else new[0] if new else None


def _is_part(exc: Any, caught: Any) -> bool:
    """Whether an exception is a part of the one caught, raised again or left as it was."""
    return (
        exc.__traceback__ is caught.__traceback__
        and exc.__cause__ is caught.__cause__
        and exc.__context__ is caught.__context__
    )


def _leaves(exc: Any) -> list[Any]:
    if not isinstance(exc, BaseExceptionGroup):
        return [exc]
    return [leaf for each in _PARTS.__get__(exc) for leaf in _leaves(each)]

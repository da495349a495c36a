"""Notices, while tests run, results that are equal to whatever a test wants: a module.

Installed into the sandbox as `septet_equality.py`. A class of the program that says what equals its objects is asked
about other values too, whenever it says yes to a test. It must work with any Python that a project has.
"""

from __future__ import annotations

import builtins
import functools
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, TypeAlias

    from septet.sandboxes.inside.pytest_audit import Watcher, is_test

    AnyObject: TypeAlias = Any
    """An object of a program that is tested."""
else:  # it lies beside this file
    from septet_audit import is_test

EQUAL_TO_ALL = "is equal to whatever a test wants"
NEAR = 4
"""A test calls a comparison itself, or by a method of unittest."""


def watch_equality(watcher: Watcher) -> None:
    """Ask each class of the program that is made from now on."""
    build: AnyObject = builtins.__build_class__

    def build_class(*arguments: AnyObject, **options: AnyObject) -> AnyObject:
        made = build(*arguments, **options)
        own = vars(made).get("__eq__") if isinstance(made, type) else None
        code: AnyObject = getattr(own, "__code__", None)
        if code is not None and watcher.is_ours(code.co_filename) and not is_test(code.co_filename):
            with suppress(TypeError):
                type.__setattr__(made, "__eq__", probed(own, watcher))
        return made

    builtins.__build_class__ = build_class


def probed(equal: AnyObject, watcher: Watcher) -> AnyObject:
    """The same comparison; one that says yes to a test is asked about other values, too."""

    @functools.wraps(equal)
    def asked(self: AnyObject, other: AnyObject) -> AnyObject:
        result = equal(self, other)
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # it is documented
        is_asked = result is True and type(other) is not type(self) and is_near_test(frame)
        if is_asked and is_equal_to_all(equal, self, other):
            code = equal.__code__
            watcher.tell(EQUAL_TO_ALL, watcher.place(code.co_filename, code.co_firstlineno))
        return result

    return asked


def is_near_test(frame: FrameType | None) -> bool:
    for _ in range(NEAR):
        if frame is None:
            return False
        if is_test(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def is_equal_to_all(equal: AnyObject, one: AnyObject, other: AnyObject) -> bool:
    others = unlike(other)
    try:
        return equal(one, object()) is True or (
            bool(others) and all(equal(one, value) is True for value in others)
        )
    except Exception:  # a comparison may know nothing of such values
        return False


def unlike(value: AnyObject) -> list[AnyObject]:
    """Values of the same type that are unlike the value, each in another way."""
    name = type(value).__name__
    if name in ("int", "float"):
        return [value + 1, value - 7919, -value - 3]
    strange: AnyObject = {"str": "?", "bytes": b"?", "list": [None, "?"], "tuple": (None, "?")}.get(name)
    return [] if strange is None else [strange + value, value + strange, value + value + strange]

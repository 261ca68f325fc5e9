"""What a forked child has to make anew: connections that the parent goes on using, and locks that nobody will release.

SQLite's file locks are not inherited by a child. One that went on with its parent's connection could commit into a log
that the parent has deleted, and an acknowledged write would be lost. (A child forked in the middle of another thread's
write finds the database locked, and says so after the usual wait: SQLite in its memory still counts that write.)
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Renewable", "renew_after_fork"]


class Renewable(Protocol):
    """Something that a fork breaks."""

    def renew(self) -> None:
        """Make connections and locks anew; called in the child, which has one thread."""
        ...


_watched: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_after_fork(it: Renewable) -> None:
    """Call `it.renew()` in every process that is forked from this one, for as long as `it` lives."""
    _watched.add(it)


def _renew() -> None:
    for it in list(_watched):
        it.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

"""The settings of a bank: how many active memories it may have, and how often it writes some (SPEC.md section 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memorybank import inputs
from memorybank.bank.info import BankInfo
from memorybank.bank.story import BankStory
from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    from memorybank.writing.rhythm import Rhythm

__all__ = ["BankSettings", "checked_settings"]


class BankSettings(BankStory):
    """The part of `MemoryBank` that keeps its settings."""

    def set_capacity(
        self, capacity: int | None, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Limit the number of active memories; None lifts the limit. Makes the bank if it is not there.

        When a memory becomes active in a full bank, the least used one is forgotten, among equals the oldest. Pinned
        ones never are: a bank full of them grows beyond its capacity. What is too much now is forgotten at once.

        Args:
            capacity: 1 or more, or None.
            if_match: the bank's `version` that the caller has read, or several; it must still be that one.
            only_new: whether the bank must not be there yet.

        Returns:
            The bank as it is now.

        Raises:
            PreconditionError: it is another version by now, or is there already.
        """
        return self.set_settings({"capacity": capacity}, if_match=if_match, only_new=only_new)

    def set_rhythm(
        self, rhythm: Rhythm, *, if_match: str | Iterable[str] | None = None, only_new: bool = False
    ) -> BankInfo:
        """Set how often a memory and the summary are written; see `memorybank.writing.rhythm` and its presets.

        Memories that were written before stay what they are; what no memory tells is cut by the new rhythm. The rest is
        as in `set_capacity`.
        """
        return self.set_settings({"rhythm": rhythm}, if_match=if_match, only_new=only_new)

    def set_settings(
        self,
        settings: Mapping[str, Any],
        *,
        if_match: str | Iterable[str] | None = None,
        only_new: bool = False,
    ) -> BankInfo:
        """Change several settings at once: all or none.

        Args:
            settings: `capacity` and `rhythm`, as above; what is missing stays as it is.
            if_match: see `set_capacity`.
            only_new: see `set_capacity`.
        """
        versions = inputs.checked_versions(if_match)
        return self._story_writer.set_settings(checked_settings(settings), versions=versions, only_new=only_new)


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, or say what is wrong with one of them."""
    from memorybank.writing.rhythm import Rhythm

    if unknown := [repr(name) for name in settings if name not in ("capacity", "rhythm")]:
        raise InvalidInputError(f"unknown setting {', '.join(unknown)}; known are capacity, rhythm")
    checked = dict(settings)
    if checked.get("capacity") is not None:
        checked["capacity"] = inputs.checked_limit(checked["capacity"], what="capacity", most=2**53)
    if "rhythm" in checked and not isinstance(checked["rhythm"], Rhythm):
        raise InvalidInputError(f"rhythm must be a memorybank.writing.rhythm.Rhythm, not {checked['rhythm']!r}")
    return checked

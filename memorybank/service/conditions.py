"""Conditional requests (RFC 9110, section 13): which versions of a thing a call is about.

`If-Match` compares strongly, so a weak tag matches nothing there; `If-None-Match` compares weakly. `*` is any version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import Headers

from memorybank.service.problems import Problem

__all__ = ["Conditions"]

_ELEMENT = re.compile(r'[ \t]*+(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*+)"[ \t]*+)?(?:,|$)')
"""One element of a list and the comma behind it; elements may be empty. Possessive, so that no header takes long."""

Tags = frozenset[str] | Literal["*"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a call says about the version that it wants, or does not.

    Attributes:
        match: it must be one of these; None if it may be any, "*" if it must only be there.
        none_match: it must not be one of these; None if it may be any, "*" if it must not be there at all.
    """

    match: Tags | None
    none_match: Tags | None

    @classmethod
    def of(cls, headers: Headers) -> Conditions:
        """Read them. Raises a 422 problem if a header is garbled."""
        return cls(_tags(headers, "if-match", strong=True), _tags(headers, "if-none-match", strong=False))

    @property
    def any(self) -> bool:
        """Whether the call says anything of versions."""
        return self.match is not None or self.none_match is not None

    def is_known(self, version: str) -> bool:
        """Return whether the caller has this version already."""
        return self.none_match is not None and (self.none_match == "*" or version in self.none_match)

    def settled(self, version: str | None) -> str | None:
        """Return the version that may be changed; None if the call says nothing of versions.

        Args:
            version: the present one; None if the thing is not there.

        Raises:
            Problem: 412, if it is not what the call is about.
        """
        if self.match is not None and (version is None or (self.match != "*" and version not in self.match)):
            there = "it does not exist" if version is None else f"its version is {version} by now"
            raise Problem("precondition-failed", f"{there}: read it again and repeat the change")
        if version is not None and self.is_known(version):
            raise Problem("precondition-failed", f"it exists, in version {version}, and If-None-Match excludes that")
        return version if self.any else None


def _tags(headers: Headers, name: str, *, strong: bool) -> Tags | None:
    lines = headers.getlist(name)
    if not lines:
        return None
    text = ",".join(lines).strip()
    if text == "*":
        return "*"
    tags: set[str] = set()
    named = place = 0
    while place < len(text):
        element = _ELEMENT.match(text, place)
        if element is None:
            named = 0
            break
        place = element.end()
        named += element[2] is not None
        if element[2] is not None and not (strong and element[1]):
            tags.add(element[2])
    if not named:
        raise Problem(
            "invalid-request",
            f'the header {name.title()} must be * or a list of tags in quotation marks, as in "9f86d081884c7d65"',
        )
    return frozenset(tags)

"""What goes out: values of the bank as the JSON of `given.py`, encoded so that no text can break it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from memorybank.bank.info import BankInfo, LogChange, Pending, Summary

__all__ = [
    "bank_json",
    "change_json",
    "etag",
    "json_response",
    "pending_json",
    "summary_json",
]


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a JSON answer. Encode it in the thread that made it: a large one takes a while."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair in somebody's metadata can only be sent as an escape
        body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, dict(headers or {}), "application/json")


def etag(version: str) -> dict[str, str]:
    """Return the header that names a version."""
    return {"ETag": f'"{version}"'}


def bank_json(info: BankInfo, name: str) -> dict[str, Any]:
    """Return a bank under the name by which the caller knows it."""
    return {
        "name": name,
        "model": info.model,
        "dimensions": info.dimensions,
        "counts": dict(info.counts),
        "capacity": info.capacity,
        "revision": info.revision,
        "created": None if info.created is None else info.created.isoformat(),
        "version": info.version,
        "rhythm": None if info.rhythm is None else asdict(info.rhythm),
    }


def change_json(change: LogChange) -> dict[str, Any]:
    """Return what became of a bank when its log changed."""
    return asdict(change) | {"stale": list(change.stale), "valid": list(change.valid)}


def pending_json(pending: Pending) -> dict[str, Any]:
    """Return a memory that is due."""
    return {
        "actions": list(pending.actions),
        "attempts": pending.attempts,
        "error": pending.error,
        "retry_at": None if pending.retry_at is None else pending.retry_at.isoformat(),
    }


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return a version of the Story Summary."""
    return asdict(summary) | {"created": summary.created.isoformat()}

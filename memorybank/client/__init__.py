"""A bank of a hosted service, with the names, values and errors of a bank in process (SPEC.md section 10).

::

    from memorybank.client import RemoteBank

    with RemoteBank("https://memories.example.com", "story-1", key=key) as bank:
        bank.add("Mara hid the silver key under the chapel floor.")

A program moves from one to the other by changing the constructor; `assemble(adventure, bank)` takes either.
`AsyncRemoteBank` has the same calls, to be awaited. They need httpx: `pip install 'story-context[client]'`.

What differs from `memorybank.MemoryBank`:

* `reembed` and `check` are for who has the database, and not here; neither are `write_due` and `set_rhythm`: the
  service writes what is due by itself.
* `put_actions` goes in one request. Of a log that is too long for that, send the new end (`after`).
* More than 1,000 memories at once, or 4 MiB of them, go in several requests. Each is all or none, the whole is not;
  `progress` is called after each. What needs no bank to be checked is checked for all before the first is sent.
* `delete` takes `if_match` with one id only.
* `search` has a `limit` of at most 1,000. With `count_tokens` it fetches the best 1,000 and fills the budget here;
  without, the service counts the tokens of o200k_base.
* An item of `edit_many` that changes nothing is refused.
* A bank's name has at most 128 characters and no slash. `get`, and what takes `if_match`, cannot name a memory whose id
  is `.` or `..`. The cursor of a page is another text.
* Beside the bank's own errors there are those of `memorybank.client.errors`.

Requests are repeated, with growing pauses, when the service is busy, out of reach or does not answer: those that do no
harm twice. `mark_used`, `edit_summary`, `branch`, conditional changes and the deletion of several memories are repeated
only if nothing can have been done: no connection was made, or the service refused before it began.

Reading order: `remote.py`, `remote_async.py` (the faces), `protocol.py`, `protocol_story.py` (a call as requests),
`bodies.py`, `answers.py` (values as JSON, and JSON as values), `exchange.py` (when to try again), `refusals.py`
(answers as exceptions), `transport.py` (httpx), `wire.py`.
"""

from __future__ import annotations

from memorybank.client.errors import (
    ForbiddenError,
    ProtocolError,
    RateLimitedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from memorybank.client.remote import RemoteBank
from memorybank.client.remote_async import AsyncRemoteBank

__all__ = [
    "AsyncRemoteBank",
    "ForbiddenError",
    "ProtocolError",
    "RateLimitedError",
    "RemoteBank",
    "ServiceError",
    "UnauthorizedError",
    "UnavailableError",
]

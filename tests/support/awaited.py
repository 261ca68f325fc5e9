"""An `AsyncRemoteBank` for tests that are written for a `RemoteBank`: each call runs in one event loop to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from memorybank.client import AsyncRemoteBank


class AwaitedBank:
    """Has the calls of the bank that it wraps, without their `await`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._run: Callable[[Any], Any] = self._runner.run
        self._bank = AsyncRemoteBank(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._bank, name)
        return self._awaiting(value) if asyncio.iscoroutinefunction(value) else value

    def __repr__(self) -> str:
        return repr(self._bank)

    def _awaiting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*arguments: Any, **options: Any) -> Any:
            return await call(*arguments, **options)

        return lambda *arguments, **options: self._run(run(*arguments, **options))

    def close(self) -> None:
        if self._run == self._runner.run:
            self._run(self._bank.close())
            self._runner.close()
            self._run = asyncio.run

"""The application: its parts, its middleware, its routes, its life."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from memorybank.errors import MemoryBankError
from memorybank.service.access import Doorkeeper
from memorybank.service.calls import Service
from memorybank.service.embedding import ServiceEmbedder, load_reranker
from memorybank.service.gate import Gate
from memorybank.service.handling import answer_error
from memorybank.service.metrics import Metrics
from memorybank.service.observing import Observer
from memorybank.service.openapi import describe
from memorybank.service.quotas import BankCounts
from memorybank.service.readiness import Readiness
from memorybank.service.routes import banks, memories, operations, search, story
from memorybank.service.story_work import StoryWork
from memorybank.service.tracing import open_tracing
from memorybank.service.workers import WorkerPool
from memorybank.service.writers import writer_of

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.service.settings import ServiceSettings

__all__ = ["create_app"]

log = logging.getLogger(__name__)

DESCRIPTION = """\
Memory banks for AI stories: short texts about earlier events, found again by meaning.

All errors are `application/problem+json` (RFC 9457). Every answer has an `X-Request-Id`, under which the server's log
knows it. Calls that change something can be repeated: the same memory twice is one memory. `ETag` with `If-Match` keeps
one caller from overwriting another's change.
"""

LAST_SECONDS = 5.0

ROUTERS = (banks.router, memories.router, search.router, story.router, operations.router)


def create_app(
    host: BankHost,
    settings: ServiceSettings,
    *,
    title: str = "memorybank",
    routers: Iterable[APIRouter] = (),
    body_limits: Mapping[str, int] | None = None,
) -> FastAPI:
    """Return the ASGI application over the banks of a host.

    Args:
        host: open it with `open_service_host`, so that requests are embedded together; close it when the server has
            ended.
        settings: see `ServiceSettings`.
        title: the name under which it describes itself and sends traces.
        routers: further routes.
        body_limits: largest bodies by path, where it is not the usual one.

    Raises:
        InvalidInputError: traces are asked for, and OpenTelemetry is not installed.
    """
    embedder = host.embedder if isinstance(host.embedder, ServiceEmbedder) else None
    pool = WorkerPool(settings.threads, settings.waiting)
    service = Service(
        host=host,
        settings=settings,
        pool=pool,
        door=Doorkeeper(host.keys),
        metrics=Metrics(host, pool, embedder),
        readiness=Readiness(host, pool, embedder),
        bank_counts=BankCounts(host, settings.max_banks),
        story_work=StoryWork(host, writer_of(host, settings)),
        tracing=open_tracing(settings.otlp_endpoint, title) if settings.otlp_endpoint else None,
        body_limits=body_limits or {},
    )
    app = FastAPI(
        # Not by `include_router`, which makes all routes anew, and that at the first request: 150 ms on the event loop.
        routes=[route for router in (*ROUTERS, *routers) for route in router.routes],
        title=title,
        version=version("story-context"),
        description=DESCRIPTION,
        docs_url=None,  # they load programs from another machine
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(service, embedder),
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.service = service
    for kind in (HTTPException, MemoryBankError, RequestValidationError):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(Gate, service=service)
    app.add_middleware(Observer, service=service)  # the last one added is the outermost
    app.openapi = cache(lambda: describe(app))  # type: ignore[method-assign]
    return app


def _lifespan(
    service: Service, embedder: ServiceEmbedder | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        if embedder is not None:
            embedder.warm_up()
        if service.host.reranking is not None:
            load_reranker(service.host.reranking)
        service.story_work.start()
        try:
            yield
        finally:
            # Nobody waits for an answer any more; a write that has begun is still given a little time to end.
            if not service.pool.close(min(LAST_SECONDS, service.settings.shutdown_seconds)):
                log.warning("some calls had not ended when the server did; none of them was acknowledged")
            service.close()
            if embedder is not None:
                embedder.close()

    return life

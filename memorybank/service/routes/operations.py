"""What operators' programs ask: alive, ready, numbers. The event loop alone answers, whatever the threads are doing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import PlainTextResponse, Response

from memorybank.service.answers import json_response
from memorybank.service.calls import Service, service_of
from memorybank.service.given import Health, Readiness
from memorybank.service.metrics import CONTENT_TYPE
from memorybank.service.openapi import described
from memorybank.service.readiness import OK

__all__ = ["router"]

router = APIRouter(tags=["operations"])

Parts = Annotated[Service, Depends(service_of)]


@router.get("/healthz", **described("Whether the process is alive", Health, gate=False))
async def healthz() -> Response:
    """It is, if this is answered at all."""
    return json_response({"status": "ok"})


READY = described("Whether calls can be served now", Readiness, gate=False)
READY["responses"][503] = {"model": Readiness, "description": "not now; `checks` says why"}


@router.get("/readyz", **READY)
async def readyz(service: Parts) -> Response:
    """The database answers, the embedding model is loaded, and nothing is stuck."""
    checks = await service.readiness.checks()
    ready = all(found == OK for found in checks.values())
    return json_response({"status": "ready" if ready else "not-ready", "checks": checks}, 200 if ready else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    **described("Numbers for Prometheus", None, problems=["unauthorized", "rate-limited", "forbidden"], gate=False),
)
async def metrics(service: Parts) -> Response:
    """For this machine, for any valid key, or for everybody if the setting `metrics_public` says so."""
    return Response(service.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

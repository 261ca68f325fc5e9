"""`POST /v1/context`: the context for the next AI call, and its report."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from assembler.service.packing import pack
from assembler.service.schemas import Context, ContextRequest
from memorybank.service.answers import json_response
from memorybank.service.bodies import Json, ServiceRoute
from memorybank.service.calls import Reading
from memorybank.service.openapi import described

__all__ = ["PATH", "router"]

PATH = "/v1/context"

router = APIRouter(route_class=ServiceRoute, tags=["context"])


@router.post(
    PATH,
    **described(
        "Pack an adventure into the context for the next AI call",
        Context,
        problems=["context-too-small", "model-unavailable", "model-mismatch", "no-reranker"],
        body=True,
    ),
)
async def make_context(call: Reading, request: Request, body: Json[ContextRequest]) -> Response:
    """Exact in tokens, and never more than `context_size` without `reserve`. The same call gives the same bytes."""

    def work() -> Response:
        asked = body.read()
        if asked.commit:
            call.must_write()
        context = pack(asked, request.app.state.tokenizers, call.bank, call.service.host)
        return json_response(context.to_dict())

    return await call.run(work)

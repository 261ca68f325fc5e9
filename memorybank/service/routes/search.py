"""Search: memories by meaning."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from memorybank.service.answers import json_response
from memorybank.service.bodies import Json, ServiceRoute
from memorybank.service.calls import BankName, Reading
from memorybank.service.given import SearchResults
from memorybank.service.openapi import described
from memorybank.service.schemas import SearchRequest
from memorybank.service.state import phase

__all__ = ["router"]

router = APIRouter(route_class=ServiceRoute, tags=["search"])


@router.post(
    "/v1/banks/{bank}/search",
    **described(
        "Find memories by meaning",
        SearchResults,
        problems=["model-unavailable", "model-mismatch", "no-reranker"],
        body=True,
    ),
)
async def search(call: Reading, bank: BankName, body: Json[SearchRequest]) -> Response:
    """The active memories that fit the query best, best first. The answer is exact: no neighbour is lost.

    A bank that was never written to, and a query of nothing but whitespace, find nothing.
    """

    def work() -> Response:
        asked = body.read()
        with phase("search"):
            found = call.bank(bank).search(
                asked.query,
                limit=asked.limit,
                max_tokens=asked.max_tokens,
                min_similarity=asked.min_similarity,
                ranking=asked.ranking,
                recent=asked.recent,
                pinned_first=asked.pinned_first,
                explain=asked.explain,
                retellings=asked.retellings,
            )
        return json_response({"results": [one.to_dict(retellings=asked.retellings) for one in found]})

    return await call.run(work)

"""Traces with OpenTelemetry, where an operator asks for them: a span for each request, and one for each of its phases.

Needs the extra `otel`. A `traceparent` of the client is honoured. Spans hold what the log holds: no text, no token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memorybank.errors import InvalidInputError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span
    from starlette.datastructures import Headers

    from memorybank.service.state import RequestState

__all__ = ["Tracing", "open_tracing"]

MISSING = "traces need OpenTelemetry: pip install 'story-context[otel]'"


class Tracing:
    """Sends spans to an exporter, in batches and in the background.

    Args:
        exporter: where they go.
        service: the name under which they go.
    """

    def __init__(self, exporter: SpanExporter, service: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("memorybank.service")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, method: str, headers: Headers) -> Iterator[Span]:
        """Begin the span of a request; it ends with the block."""
        from opentelemetry.trace import SpanKind

        carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        parent = self._propagator.extract(carrier)
        span = self._tracer.start_span(method, parent, kind=SpanKind.SERVER, attributes={"http.request.method": method})
        try:
            yield span
        finally:
            span.end()

    def finish(self, span: Span, method: str, route: str, status: int, state: RequestState) -> None:
        """Say how a request went, and in which phases."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status, "request.id": state.id})
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        inside = set_span_in_context(span)
        for name, begin, end in list(state.phases.spans):
            self._tracer.start_span(name, inside, start_time=begin).end(end)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def open_tracing(endpoint: str, service: str) -> Tracing:
    """Return what sends spans to an OTLP endpoint over HTTP.

    Raises:
        InvalidInputError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise InvalidInputError(MISSING) from None
    return Tracing(OTLPSpanExporter(endpoint=endpoint), service)

"""What Prometheus is told. Labels have few values: routes by their template, never a bank, an id or a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memorybank.service.embedding import ServiceEmbedder

if TYPE_CHECKING:
    from memorybank.host import BankHost
    from memorybank.service.state import RequestState
    from memorybank.service.workers import WorkerPool

__all__ = ["CONTENT_TYPE", "METHODS", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

SENT_AWAY = frozenset({401, 403, 413, 429, 431, 503})
"""Statuses of requests that could have been served at another time, or for somebody else."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one application; each has a registry of its own.

    Args:
        host: says what is in memory.
        pool: says who waits.
        embedder: says what waits to be embedded; None if the host's is not of the service.
    """

    def __init__(self, host: BankHost, pool: WorkerPool, embedder: ServiceEmbedder | None) -> None:
        self._registry = registry = CollectorRegistry()
        what = ["route", "method", "status"]
        self._requests = Counter("memorybank_requests", "Requests answered.", what, registry=registry)
        self._seconds = Histogram(
            "memorybank_request_seconds", "Time to the answer.", ["route", "method"], buckets=SECONDS, registry=registry
        )
        self._phases = Histogram(
            "memorybank_phase_seconds", "Time in a phase of a request.", ["phase"], buckets=SECONDS, registry=registry
        )
        self._rejections = Counter(
            "memorybank_rejections", "Requests sent away, by kind of problem.", ["reason"], registry=registry
        )
        self._steps = Histogram(
            "memorybank_embedding_batch_texts",
            "Texts embedded together.",
            buckets=(1, 2, 4, 8, 16, 32),
            registry=registry,
        )
        if embedder is not None:
            embedder.batching.on_step = self._steps.observe
        registry.register(_State(host, pool, embedder))

    def answered(self, route: str, method: str, status: int, seconds: float, state: RequestState) -> None:
        """Note a request."""
        method = method if method in METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)
        for name, took in list(state.phases.seconds.items()):
            self._phases.labels(name).observe(took)
        if state.problem is not None and status in SENT_AWAY:
            self._rejections.labels(state.problem).inc()

    def text(self) -> bytes:
        """Return all of them in Prometheus's format."""
        return generate_latest(self._registry)


class _State(Collector):
    """Numbers that are kept elsewhere, read when they are asked for."""

    def __init__(self, host: BankHost, pool: WorkerPool, embedder: ServiceEmbedder | None) -> None:
        self._host = host
        self._pool = pool
        self._embedder = embedder

    def describe(self) -> list[Metric]:
        return []  # so that registering asks nothing

    def collect(self) -> Iterator[Metric]:
        stats, embedder = self._host.stats(), self._embedder
        yield _gauge("memorybank_in_flight", "Calls let in and not yet answered.", self._pool.inside)
        yield _gauge("memorybank_queued_calls", "Calls that wait for a thread.", self._pool.queued)
        yield _gauge("memorybank_banks_in_memory", "Banks at hand.", stats.banks)
        yield _gauge("memorybank_indexes_in_memory", "Indexes at hand.", stats.indexes.held)
        yield _gauge("memorybank_index_bytes", "Memory that they take, about.", stats.indexes.bytes)
        yield _counter("memorybank_index_hits", "Searches that found their index in memory.", stats.indexes.hits)
        yield _counter("memorybank_index_misses", "Searches that had to build it.", stats.indexes.misses)
        yield _counter("memorybank_index_evictions", "Indexes that had to go.", stats.indexes.evictions)
        if embedder is not None:
            hits = max(0, embedder.asked - embedder.missed) if embedder.has_cache else 0
            yield _gauge("memorybank_queued_texts", "Texts that wait to be embedded.", embedder.batching.queued)
            yield _counter("memorybank_embedding_texts", "Texts asked for.", embedder.asked)
            yield _counter("memorybank_embedding_cache_hits", "Texts whose vector was known.", hits)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(name, says, value=value)


def _counter(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(name, says, value=value)

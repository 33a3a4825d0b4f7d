"""Traces for OpenTelemetry: a span for each statement, and one for each request that it makes of workers and controllers.

Only imported where an endpoint is set; needs `pip install millrace[otel]`. The SDK reads its own settings (sampler, headers, attributes of the
resource) from the variables OTEL_…; spans are collected and sent by a thread of its own.
"""

from __future__ import annotations

import atexit
import os
import time

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from backend.network.origin import OpenSpan

_propagator = TraceContextTextMapPropagator()


class SdkSpan:
    """A span of the SDK. `trace` is what its children name as their parent."""

    def __init__(self, span: Span) -> None:
        self._span = span
        context = span.get_span_context()
        self.trace = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def end(self, attributes: dict[str, str | int], error: str = "") -> None:
        self._span.set_attributes(attributes)
        if "db.operation.name" in attributes:
            self._span.update_name(str(attributes["db.operation.name"]))
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(StatusCode.ERROR)
        self._span.end(time.time_ns())


class SdkSpans:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, name: str, parent: str, attributes: dict[str, str | int]) -> OpenSpan:
        context = _propagator.extract({"traceparent": parent}) if parent else None
        return SdkSpan(self._tracer.start_span(name, context, SpanKind.SERVER, attributes))


def begin_spans(endpoint: str, process: str, version: str) -> SdkSpans:
    """Spans of the process named `process`, sent to an OTLP receiver."""
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "millrace"), "service.version": version, "service.instance.id": process})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    atexit.register(provider.shutdown)  # what is collected is sent
    return SdkSpans(provider.get_tracer("millrace", version))

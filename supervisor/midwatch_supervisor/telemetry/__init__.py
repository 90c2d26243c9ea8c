"""Data for other tools: spans for OpenTelemetry, metrics for Prometheus."""

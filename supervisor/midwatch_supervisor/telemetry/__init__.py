"""What other tools are told: spans for OpenTelemetry, figures for Prometheus."""

"""What tests and benchmarks of a fleet play on: real servers on loopback, and proxies that fail."""

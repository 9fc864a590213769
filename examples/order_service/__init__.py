"""A small order service, and its tests: see docs/broker.md."""

"""Kafka's request log becomes operations: files and lines, bodies, and what each kind of request waits for."""

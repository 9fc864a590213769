"""Kafka's high watermarks, rebuilt from the followers' fetches, and what they predict checked against the log."""

"""Kafka's high watermarks, rebuilt from the followers' fetches, and what they predict held against the log."""

"""Rebuild Kafka's high watermarks from the followers' fetches, and check what they predict against the log."""

"""Rebuild Kafka's high watermarks from the followers' fetches, and compare their predictions with the log."""

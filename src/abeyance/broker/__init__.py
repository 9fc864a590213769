"""A Kafka whose waiting is real: brokers in one process, on one event loop and one timer, for tests and development."""

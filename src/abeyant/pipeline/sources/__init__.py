"""Sources of operations and events: files, Kafka topics, catalog tables; and the mapping of their columns."""

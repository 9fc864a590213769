"""Where a stream's operations and events come from: files, and Kafka topics."""

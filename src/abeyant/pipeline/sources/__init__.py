"""Where a person's own operations and events are read from: files, Kafka topics, and what their columns are made of."""

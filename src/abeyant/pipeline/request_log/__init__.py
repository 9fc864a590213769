"""Read Kafka's request log as operations: its files and lines, request bodies, and what each request waits for."""

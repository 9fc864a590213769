"""The public methods of `Cluster` for tests: reading it, changing it, and injecting faults."""

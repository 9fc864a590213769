"""The operations that wait for replicas, leaders and other brokers: each in a purgatory of its broker."""

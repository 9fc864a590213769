"""The base of delayed operations, and the wait for in-sync replicas; other operations stand with their requests."""

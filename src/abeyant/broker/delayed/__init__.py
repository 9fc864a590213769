"""What operations that wait have in common, and the wait for in-sync replicas; others stand with their requests."""

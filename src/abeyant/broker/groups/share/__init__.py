"""Share groups (KIP-932): who has which partitions. What becomes of the records is in `broker.shares`."""

"""Share groups (KIP-932): their members and assignments. The delivery of records is in `broker.shares`."""

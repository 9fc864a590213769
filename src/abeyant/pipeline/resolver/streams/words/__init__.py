"""Streams by the words of `docs/design-resolve.md`: a shard whose operations ask more than the plain question."""

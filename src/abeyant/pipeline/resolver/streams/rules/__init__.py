"""Streams with the options of `docs/design-resolve.md`: the plan, the state and the batches of their shards."""

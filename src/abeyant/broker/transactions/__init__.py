"""The transaction coordinator (KIP-98, KIP-360, KIP-890).

`transaction` is the state machine of one transactional id, without I/O; `record` is its record in the log; `shard` has
the transactional ids of one partition of `__transaction_state`; `markers` writes transaction markers to partitions;
with `verification`, partition leaders verify a transaction with the coordinator.
"""

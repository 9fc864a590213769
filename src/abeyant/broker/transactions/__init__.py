"""The transaction coordinator (KIP-98, KIP-360, KIP-890).

`transaction` is the state machine of one transactional id, without input or output; `record` how it is written down;
`shard` what a broker holds of the ids that it coordinates; `markers` how a transaction that is over is ended in its
partitions; `verification` what those partitions' leaders ask.
"""

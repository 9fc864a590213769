"""The transaction coordinator (KIP-98, KIP-360, KIP-890).

`transaction` is the state machine of one transactional id, without input or output; `record` its record in the log;
`shard` has the ids that a broker coordinates; `markers` writes the markers that end a transaction in its partitions;
`verification` is the request of those partitions' leaders.
"""

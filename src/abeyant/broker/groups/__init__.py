"""The group coordinator: members, assignments and committed offsets.

`shard` holds the groups of one partition of `__consumer_offsets`. `classic/`, `consumer/`, `share/` and `streams/` are
the protocols: in each, `group` is the state of one group, and `protocol` handles the requests that change this state.
`migration/` converts a group from the classic to the consumer protocol or back, and serves classic members in a
consumer group. `offsets/` has the committed offsets, `waits` the delayed operations. These modules do no network I/O.
"""

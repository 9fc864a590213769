"""The group coordinator: members, assignments and committed offsets.

`shard` holds the groups of one partition of `__consumer_offsets`. `classic/` and `consumer/` are the two protocols: in
each, `group` is the state of one group, and `protocol` changes it by requests. `migration/` converts a group from one
protocol to the other, and serves classic members in a consumer group. `offsets/` has the committed offsets, `waits` the
delayed operations. None of them does network I/O.
"""

"""The group coordinator: members, assignments and committed offsets.

`shard` has all of it for one partition of `__consumer_offsets`. `classic/` and `consumer/` are the two protocols: in
each, `group` is the state of one group and nothing else, `protocol` what requests do to it. `migration/` converts a
group from one protocol to the other, and serves classic members in a consumer group. `offsets/` are committed offsets.
`waits` and `session` are the operations in which groups wait. None of them knows a socket.
"""

"""The group coordinator: who is in a group, who has which partitions, and how far they are.

`classic` is a group's state and nothing else; `rebalancing` is the protocol, in terms of members, time-outs and a log;
`shard` has all of it for one partition of `__consumer_offsets`. None of them knows a socket.
"""

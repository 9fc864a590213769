"""The group coordinator: who is in a group, who has which partitions, and how far they are.

`shard` has all of it for one partition of `__consumer_offsets`. `classic` is the state of a group of the classic
protocol and nothing else; `membership` and `rebalancing` are that protocol, in terms of members, time-outs and a log.
`consumer` is the state of a group of the new protocol, `consuming` that protocol. `migration` makes a group of one kind
of one of the other, and `classic_members` serves those that speak the classic protocol in a group of the new one. None
of them knows a socket.
"""

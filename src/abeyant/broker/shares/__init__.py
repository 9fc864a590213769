"""Share groups (KIP-932): the state of each record in flight, its member, lock and delivery count.

`partition` is one partition for one group, at the partition's leader; `partitions` has a broker's share partitions;
`state` stores what must survive a broker, in the topic `__share_group_state`. The groups are in `groups.share`.
"""

"""Share groups (KIP-932): which member has which records of a partition, until when, and how often each was delivered.

`partition` is one partition for one group, at the partition's leader; `partitions` has a broker's; `state` keeps what
has to survive a broker, in the topic `__share_group_state`. The groups themselves are in `groups.share`.
"""

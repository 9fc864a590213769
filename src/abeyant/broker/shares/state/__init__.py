"""The share coordinator: keeps the state of share partitions in the topic `__share_group_state`.

`shard` is the state in one partition of that topic; `records` are its records; `merging` merges changes into a state.
"""

"""What the coordinators of groups and of transactions share: a topic for their state, and who coordinates what.

Imports go to `topics` (which topics, and the partition for a key), `shard` (what one partition of such a topic holds)
and `coordinator` (a broker's shards).
"""

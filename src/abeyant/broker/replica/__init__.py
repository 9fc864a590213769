"""Partitions on a broker: log, high watermark and replication.

`partition` has one replica; `remote` has the leader's record of a follower; `fetcher` has a follower's fetch loop, and
`session` the leader's side of that loop. Replicas share the bytes of their batches.
"""

"""Leases: one writer at a time for a result or a stream's output; a dead writer's lease ends by itself.

`local` locks a file of this machine, `store` renews a small file on a store that knows no locks. `queries` keeps either
for as long as a streaming query runs.
"""

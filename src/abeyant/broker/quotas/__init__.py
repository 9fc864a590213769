"""Client quotas: limits of users, client ids and addresses, and throttling beyond them (KIP-13, KIP-219).

`table` has the quotas, which the controller keeps; `limits` measures clients against them; `rates` has the measures.
"""

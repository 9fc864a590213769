"""Client quotas: limits of users, client ids and addresses, and the throttling of who exceeds them (KIP-13, KIP-219).

`table` has the quotas, which the controller keeps; `limits` measures one broker's clients; `rates` are the measures.
"""

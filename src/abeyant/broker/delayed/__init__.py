"""The base of delayed operations, and the wait for acks=all. Other operations are beside their requests."""

"""Client metrics (KIP-714): what clients are asked to push, and what they pushed.

`subscriptions` are kept by the controller; `clients` are those of one broker; `otlp` reads the names in a push.
"""

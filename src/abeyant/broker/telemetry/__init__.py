"""Client metrics (KIP-714): subscriptions to clients' metrics, and the metrics that clients push.

`subscriptions` has the controller's subscriptions, `clients` one broker's clients; `otlp` reads the names in a push.
"""

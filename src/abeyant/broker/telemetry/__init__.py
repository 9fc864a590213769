"""Client metrics (KIP-714): subscriptions to clients' metrics, and the metrics that clients push.

`subscriptions` are kept by the controller; `clients` are those of one broker; `otlp` reads the names in a push.
"""

"""TLS and SASL, for clients that require them: who a client is. What it may do is in `broker.acls`.

`protocol` has Kafka's four security protocols; `certificates` has TLS, `login` has SASL.
"""

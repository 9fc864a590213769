"""Authenticate clients by TLS and SASL, for clients that require them. Authorization is in `broker.acls`.

`protocol` has Kafka's four security protocols; `certificates` has TLS, `login` has SASL.
"""

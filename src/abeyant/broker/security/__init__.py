"""Authenticate clients by TLS and SASL, for clients that require them. Authorization is in `broker.acls`.

The module `protocol` has Kafka's four security protocols, `certificates` has TLS, and `login` has SASL.
"""

"""TLS and SASL, for clients that require them. There are no ACLs: any authenticated client has full access.

`protocol` has Kafka's four security protocols; `certificates` has TLS, `login` has SASL.
"""

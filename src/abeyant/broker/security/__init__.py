"""Who may come in: TLS and SASL, for programs that insist on them. Whoever is in may do everything.

`protocol` says which of both is asked for, by Kafka's names; `certificates` has TLS, `login` has SASL.
"""

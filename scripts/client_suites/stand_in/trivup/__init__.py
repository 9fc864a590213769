"""A stand-in for trivup, which confluent-kafka's tests ask for brokers."""

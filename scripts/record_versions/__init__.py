"""Record the request log of a genuine Kafka broker of every minor version, see `__main__`."""

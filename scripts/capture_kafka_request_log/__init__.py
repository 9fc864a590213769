"""The capture of a request log written by genuine Apache Kafka: see README.md."""

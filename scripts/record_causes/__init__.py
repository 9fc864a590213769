"""Recordings of genuine Kafka with one planted cause each: what the rules for suspects are held against."""

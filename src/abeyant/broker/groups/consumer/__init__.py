"""Groups of the consumer protocol (KIP-848): one heartbeat for everything."""

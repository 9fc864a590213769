"""Groups of the consumer protocol (KIP-848), whose members send only heartbeats."""

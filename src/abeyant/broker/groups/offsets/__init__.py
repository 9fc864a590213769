"""The offsets that groups commit."""

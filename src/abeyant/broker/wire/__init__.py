"""Bytes and messages: framing, headers, API versions, and kio's schemas behind one layer. Independent of topics."""

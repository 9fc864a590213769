"""The wire protocol: framing, headers, API versions, and messages by kio's schemas. It knows nothing of topics."""

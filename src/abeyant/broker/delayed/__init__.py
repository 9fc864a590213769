"""The base of delayed operations, and those of produces and fetches. Others are beside their requests."""

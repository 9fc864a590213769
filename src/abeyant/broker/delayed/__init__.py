"""The base of a broker's delayed operations, and those of produces, fetches and throttling.

The others are in the modules of their requests.
"""

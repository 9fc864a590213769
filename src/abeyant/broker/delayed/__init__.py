"""The base of a broker's delayed operations, and the operations of produces, fetches and throttling.

Other delayed operations are in the modules of their requests.
"""

"""One file per API, which handles its requests: answers at once, or submits an operation that answers later.

The registry `wire/apis.py` lists their keys and versions, and what each file defines. `common/` has what they share.
"""

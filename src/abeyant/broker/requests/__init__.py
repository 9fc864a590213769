"""One module per API, which handles its requests: it responds at once, or submits an operation that responds later.

The registry `wire/apis.py` lists their keys and versions, and what each module defines. `common/` has shared code.
"""

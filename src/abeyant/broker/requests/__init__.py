"""One file an API: it takes the request and answers, or submits an operation that answers later.

The registry, with keys and versions, is `wire/apis.py`, which also says what each file defines. What several APIs share
is in `common/`.
"""

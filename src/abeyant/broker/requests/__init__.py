"""What the broker does with each request: a message in; an answer, or an operation that will give it.

A module an API or family, imported with the API's first request; see wire/apis.py for what it has to define.
"""

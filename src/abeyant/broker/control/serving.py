"""The HTTP server of control: routes for all operations, the OpenAPI description, and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from abeyant import __version__
from abeyant.broker.api.leading import UnknownNameError
from abeyant.broker.control import client_operations, cluster_operations, content_operations, fault_operations
from abeyant.broker.control.openapi import PATHS, describe, parameters_of
from abeyant.broker.control.operation import ControlRequest, Operation
from abeyant.broker.control.ordered import Control
from abeyant.broker.control.schema import check, from_text, with_integers
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.web import HttpError, Response, Server, Site

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.web import Request

OPERATIONS: Final = (
    *cluster_operations.OPERATIONS, *fault_operations.OPERATIONS, *content_operations.OPERATIONS,
    *client_operations.OPERATIONS,
)  # fmt: skip


def serve(
    cluster: Cluster,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    hosts: Collection[str] = (),
) -> Server:
    """Serve control of an open cluster over HTTP; port 0 picks a free one. Close the server before the cluster.

    The default host is loopback; any other needs a `token`, which clients send as `Authorization: Bearer TOKEN`.
    `hosts` are further names by which clients reach this machine, besides the cluster's `advertise`. Raises
    AbeyantError if the port is taken or a token is missing.
    """
    return add_control_routes(cluster).serve(host, port, token=token, hosts=(*hosts, cluster._advertised[0]))


def add_control_routes(cluster: Cluster, site: Site | None = None) -> Site:
    """Add the routes of the control API to a site, by default a new one, and return the site."""
    site = Site() if site is None else site
    control = Control(cluster)
    for operation in OPERATIONS:
        site.add(operation.method, operation.path, partial(_run, control, operation))
    description = describe(OPERATIONS, __version__)
    site.get("/openapi.json", lambda request: description)
    site.get("/metrics", partial(_metrics, cache(partial(_registry_of, cluster))))
    return site


def _run(control: Control, operation: Operation, request: Request) -> Any:
    path = {
        name: from_text(PATHS[name], request.params[name], f"path.{name}") for name in parameters_of(operation.path)
    }
    for name in request.query:
        if name not in operation.query and name != "token":
            hint = did_you_mean(name, operation.query)
            raise HttpError(400, f"unknown query parameter {name!r}{hint}")
    query = {
        name: from_text(schema, request.query[name], f"query.{name}")
        for name, schema in operation.query.items()
        if name in request.query
    }
    try:
        body = _body_of(operation, request)
    except RecursionError:
        raise HttpError(400, "the body is nested too deeply") from None
    try:
        return operation.run(control, ControlRequest(path, query, body))
    except HttpError:
        raise
    except UnknownNameError as error:
        raise HttpError(404, str(error)) from error
    except (AbeyantError, TimeoutError, ValueError, OverflowError) as error:
        raise HttpError(409, str(error)) from error


def _body_of(operation: Operation, request: Request) -> Any:
    body, schema = with_integers(request.json()), operation.body
    if schema is None:
        if body is not None:
            raise HttpError(400, f"{operation.method} {operation.path} takes no body")
        return None
    required = [schema["discriminator"]["propertyName"]] if "oneOf" in schema else schema.get("required", ())
    if request.body:
        check(schema, body, "body")
    elif required:
        needs = f"needs a body, a JSON object with {', '.join(required)}"
        raise HttpError(400, f"{operation.method} {operation.path} {needs}")
    return body


def _registry_of(cluster: Cluster) -> Any:
    """Return a registry of the cluster's metrics; None without the extra `metrics`."""
    try:
        from prometheus_client import CollectorRegistry
    except ModuleNotFoundError:
        return None
    from abeyant.metrics import Collector

    registry = CollectorRegistry()
    Collector(cluster, registry=registry)
    return registry


def _metrics(registry_of: Callable[[], Any], request: Request) -> Response:
    registry = registry_of()
    if registry is None:
        from abeyant.installation import install_command

        raise HttpError(404, f"metrics need prometheus-client: {install_command('metrics')}")
    from prometheus_client import exposition

    encode, kind = exposition.choose_encoder(request.headers.get("accept", ""))
    return Response(200, encode(registry), kind)

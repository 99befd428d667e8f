"""Every path of a master in one list, and the OpenAPI document of it.

A path that is not in the list does not exist, and each says who may ask.
"""

import inspect
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from holdfast.api.access import Access
from holdfast.api.audit import Audit
from holdfast.api.problems import Problem
from holdfast.api.route import ApiRequest, Permission, Route, TextAnswer, pattern_of
from holdfast.api.routes.cluster import ClusterPaths
from holdfast.api.routes.connectors import ConnectorPaths
from holdfast.api.routes.jobs import JobPaths
from holdfast.api.routes.metrics import MetricPaths
from holdfast.api.seatunnel.checkpoints import CheckpointsV2
from holdfast.api.seatunnel.cluster import ClusterV2
from holdfast.api.seatunnel.jobs import JobsV2
from holdfast.api.seatunnel.pending import PendingV2
from holdfast.api.seatunnel.submit import OrdersV2
from holdfast.api.service import Api
from holdfast.api.ui import page_routes
from holdfast.master.looks import LookRequests

PROBLEMS = {
    "400": "The request is wrong.",
    "401": "The token is missing or invalid.",
    "403": "This role may not do it, or a page of another site asked.",
    "404": "There is no such thing.",
    "405": "This path does not take this method.",
    "409": "The job is in another state.",
    "413": "The body is too large.",
    "415": "The body is of another kind.",
    "421": "Another master leads; only for clients that follow.",
    "429": "Too many wrong tokens.",
    "503": "No master leads at this moment, or the store does not answer.",
}
REFS = "#/components/schemas/{name}"


def all_routes(api: Api, access: Access, audit: Audit, looks: LookRequests) -> list[Route]:
    """Return the paths of a master."""
    document = OpenApi()
    routes = [
        *document.routes(),
        *ClusterPaths(api, access, audit).routes(),
        *JobPaths(api, audit).routes(),
        *ConnectorPaths(api, audit, looks).routes(),
        *JobsV2(api).routes(),
        *PendingV2(api).routes(),
        *OrdersV2(api, audit).routes(),
        *ClusterV2(api).routes(),
        *CheckpointsV2(api, audit).routes(),
        *MetricPaths(api).routes(),
        *page_routes(),
    ]
    document.make(routes)
    return routes


class OpenApi:
    """The handler.  The document is written once; the paths never change."""

    def __init__(self) -> None:
        self._document = b""

    def routes(self) -> list[Route]:
        """Return the path."""
        return [
            Route("GET", "/openapi.json", Permission.READ, self.answer, TextAnswer,
                  "This document.", leads=False),
        ]  # fmt: skip

    def make(self, routes: Iterable[Route]) -> None:
        """Make the document."""
        self._document = msgspec.json.encode(document(list(routes)))

    async def answer(self, ask: ApiRequest) -> TextAnswer:
        return TextAnswer(self._document, "application/json;charset=UTF-8")


def document(routes: list[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of some paths."""
    types = {t: None for r in routes for t in (r.answer, r.body, r.query) if _shaped(t)}
    made = msgspec.json.schema_components([*types, Problem], ref_template=REFS)
    shapes, components = _tuples(list(made[0])), _tuples(made[1])
    known = dict(zip(types, shapes[:-1], strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.permission is Permission.PUBLIC and route.answer is TextAnswer:
            continue  # the pages of the UI
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, known, components, shapes[-1]
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": version("holdfast")},
        "security": [{"bearer": []}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _tuples(schema: Any) -> Any:
    """Write tuples as plain lists of their length: not every reader knows `prefixItems`."""
    if isinstance(schema, list):
        return [_tuples(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _tuples(value) for key, value in schema.items()}
    if "prefixItems" in found:
        del found["prefixItems"]
        found["items"] = {}
    return found


def _shaped(kind: Any) -> bool:
    return kind is not None and kind is not TextAnswer and kind is not bytes


def _operation(
    route: Route, known: dict[Any, Any], components: dict[str, Any], problem: Any
) -> dict[str, Any]:
    json = {"application/json": {"schema": known.get(route.answer, {})}}
    answer = {"*/*": {"schema": {"type": "string"}}} if route.answer is TextAnswer else json
    refused = {"application/json": {"schema": problem}}
    found: dict[str, Any] = {
        "summary": route.about,
        "description": f"Needs the permission {route.permission}.",
        "operationId": f"{route.method.lower()} {route.path}",
        "tags": [route.group],
        "parameters": [*_in_path(route), *_in_query(route, known, components)],
        "responses": {
            "200": {"description": inspect.cleandoc(route.about), "content": answer},
            **{k: {"description": v, "content": refused} for k, v in PROBLEMS.items()},
        },
    }
    if route.permission is Permission.PUBLIC:
        found["security"] = []
    if route.body is not None:
        schema = known.get(route.body, {"type": "string"})
        medias = {media: {"schema": schema} for media in route.body_media}
        if route.body_media == ("multipart/form-data",):
            form = {"config_file": {"type": "string", "format": "binary"}}
            schema = {"type": "object", "properties": form, "required": ["config_file"]}
            medias = {"multipart/form-data": {"schema": schema}}
        found["requestBody"] = {"required": True, "content": medias}
    return found


def _in_path(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": f"^{pattern_of(name).pattern}$"},
        }
        for name in route.parameters
    ]


def _in_query(
    route: Route, known: dict[Any, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    name = known[route.query]["$ref"].rpartition("/")[2]
    properties: dict[str, Any] = components[name].get("properties", {})
    return [
        {"name": key, "in": "query", "required": False, "schema": schema}
        for key, schema in properties.items()
    ]

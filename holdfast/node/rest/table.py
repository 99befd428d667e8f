"""Every path of a master, in one list.

A path that is not in it does not exist, and each says who may ask.
"""

from holdfast.node.api import Api
from holdfast.node.looks import Looks
from holdfast.node.rest.access import Access
from holdfast.node.rest.audit import Audit
from holdfast.node.rest.connecting import ConnectPaths
from holdfast.node.rest.metrics import MetricPaths
from holdfast.node.rest.openapi import OpenApi
from holdfast.node.rest.ours import JobPaths
from holdfast.node.rest.ours_cluster import ClusterPaths
from holdfast.node.rest.ours_workers import WorkerPaths
from holdfast.node.rest.pages import page_routes
from holdfast.node.rest.route import Route
from holdfast.node.rest.saved import SavedPaths
from holdfast.node.rest.v2_checkpoints import CheckpointsV2
from holdfast.node.rest.v2_cluster import ClusterV2
from holdfast.node.rest.v2_jobs import JobsV2
from holdfast.node.rest.v2_options import OptionsV2
from holdfast.node.rest.v2_orders import OrdersV2


def all_routes(api: Api, access: Access, audit: Audit, looks: Looks) -> list[Route]:
    """Return the paths of a master."""
    document = OpenApi()
    routes = [
        *document.routes(),
        *ClusterPaths(api, access, audit).routes(),
        *WorkerPaths(api).routes(),
        *JobPaths(api, audit).routes(),
        *ConnectPaths(api, audit, looks).routes(),
        *SavedPaths(api, audit).routes(),
        *JobsV2(api).routes(),
        *OrdersV2(api, audit).routes(),
        *ClusterV2(api).routes(),
        *CheckpointsV2(api, audit).routes(),
        *OptionsV2(api).routes(),
        *MetricPaths(api).routes(),
        *page_routes(),
    ]
    document.make(routes)
    return routes

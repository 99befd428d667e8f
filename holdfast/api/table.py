"""Every path of a master, in one list.

A path that is not in it does not exist, and each says who may ask.
"""

from holdfast.api.access import Access
from holdfast.api.audit import Audit
from holdfast.api.connecting import ConnectPaths
from holdfast.api.openapi import OpenApi
from holdfast.api.route import Route
from holdfast.api.routes.cluster import ClusterPaths
from holdfast.api.routes.jobs import JobPaths
from holdfast.api.routes.metrics import MetricPaths
from holdfast.api.routes.saved_states import SavedPaths
from holdfast.api.routes.ui import page_routes
from holdfast.api.routes.workers import WorkerPaths
from holdfast.api.seatunnel.checkpoints import CheckpointsV2
from holdfast.api.seatunnel.cluster import ClusterV2
from holdfast.api.seatunnel.jobs import JobsV2
from holdfast.api.seatunnel.options import OptionsV2
from holdfast.api.seatunnel.submit import OrdersV2
from holdfast.api.service import Api
from holdfast.master.looks import Looks


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

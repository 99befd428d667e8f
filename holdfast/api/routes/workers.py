"""Our own paths about one worker: have it be free of tasks, or take tasks again."""

from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.shapes import Done


class WorkerPaths:
    """The handlers."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def routes(self) -> list[Route]:
        """Return the paths."""
        drain = "/api/workers/{worker}/drain"
        return [
            Route("POST", drain, Permission.OPERATE, self.drain, Done,
                  "Have a worker get no task, and its tasks go on elsewhere.", order=True),
            Route("DELETE", drain, Permission.OPERATE, self.undrain, Done,
                  "Have a worker that was drained get tasks again.", order=True),
        ]  # fmt: skip

    async def drain(self, ask: ApiRequest) -> Done:
        return await self._wish(ask.path["worker"], drained=True)

    async def undrain(self, ask: ApiRequest) -> Done:
        return await self._wish(ask.path["worker"], drained=False)

    async def _wish(self, worker: str, *, drained: bool) -> Done:
        leader = await self.api.leader()
        await self.api.fenced(leader, leader.drain(worker, drained=drained))
        return Done()

"""Our own paths about saved states: what lives have left, and going on from it."""

import secrets

import msgspec

from holdfast.api.audit import Audit
from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.shapes import Done, Restart
from holdfast.api.views import Accepted, SavedView, Submit
from holdfast.core.saved_state import Saved
from holdfast.errors import UserError
from holdfast.master.accept import told
from holdfast.master.saved_states import Vault


class SavedAsked(msgspec.Struct):
    """Of which job; of all if none is given."""

    job: str = ""


class SavedPaths:
    """The handlers."""

    def __init__(self, api: Api, audit: Audit) -> None:
        self.api = api
        self.audit = audit

    def routes(self) -> list[Route]:
        """Return the paths."""
        one = "/api/jobs/{jobId}"
        return [
            Route("GET", "/api/savepoints", Permission.READ, self.list, list[SavedView],
                  "What jobs have left to go on from, the newest first.", SavedAsked, narrow=True),
            Route("DELETE", one + "/savepoints/{saved}", Permission.OPERATE, self.remove, Done,
                  "Remove a saved state, with what was staged for it.", order=True),
            Route("POST", one + "/restart", Permission.OPERATE, self.restart, Accepted,
                  "Go on from what a life of the job has left.", body=Restart, order=True),
        ]  # fmt: skip

    async def list(self, ask: ApiRequest) -> list[SavedView]:
        vault = (await self.api.leader()).vault
        return [view(vault, s) for s in vault.of(ask.query.job) if ask.who.sees(s.job)]

    async def remove(self, ask: ApiRequest) -> Done:
        leader = await self.api.leader()
        number = int(ask.path["saved"])
        found = [k.saved for k in leader.vault.states.values() if k.saved.job == ask.job]
        saved = next((s for s in found if s.life == number), None)
        if saved is None:
            raise UserError(f"Job {ask.job} has no saved state {number}.", code="saved.unknown")
        await self.api.fenced(leader, leader.remove_saved(saved))
        return Done()

    async def restart(self, ask: ApiRequest) -> Accepted:
        asked: Restart = ask.body
        token = asked.token or secrets.token_hex(16)
        if asked.write_again:
            self.audit.writes_again(ask.who, ask.job, ask.job, asked.number)
        return await self.api.submit(
            Submit(
                asked.spec, token, ask.job, restore=True, maps=asked.maps,
                allow_dropped=asked.allow_dropped, number=asked.number,
                write_again=asked.write_again,
            )
        )  # fmt: skip


def view(vault: Vault, saved: Saved) -> SavedView:
    """Return a saved state as it is shown."""
    left_s = saved.made_s + saved.retained_s - vault.led_s() if saved.retained_s else None
    return SavedView(
        saved.job, saved.life, saved.kind.value, saved.name, saved.ended_s, saved.totals.written,
        {p.pipeline: p.number for p in saved.parts}, sum(len(p.waiting) for p in saved.parts),
        saved.retained_s, None if left_s is None else max(0.0, left_s),
        [told(heir) for heir in vault.past(saved)],
    )  # fmt: skip

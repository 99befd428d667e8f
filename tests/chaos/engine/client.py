"""A client of the cluster under test: asks every master in turn until one gives an answer.

It keeps its token over all tries, so a submit that is asked for again is the same submit.
"""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAUSE_S = 0.1
REQUEST_S = 5.0


@dataclass(frozen=True)
class Answer:
    """What a master answered: a yes, or a no that trying again does not change."""

    master: str
    status: int
    body: dict[str, Any]

    @property
    def yes(self) -> bool:
        """Whether it was done."""
        return self.status == 200

    @property
    def message(self) -> str:
        """Why it was not."""
        return str(self.body.get("message", ""))


class Client:
    """Asks masters by name."""

    def __init__(self, urls: Mapping[str, str], token: str) -> None:
        self._urls = urls
        self._token = token

    async def submit(self, job: str, spec: str, token: str) -> Answer:
        """Submit a job, until there is a definite answer."""
        return await self.ask("/api/jobs", {"spec": spec, "token": token, "job_id": job})

    async def cancel(self, job: str) -> Answer:
        """Cancel a job."""
        return await self.ask(f"/api/jobs/{job}/cancel", {})

    async def job(self, job: str) -> dict[str, Any]:
        """Return what the leader says of a job; a standby's word does not do."""
        while True:
            for name in self._urls:
                answer = await self.ask_one(name, f"/api/jobs/{job}")
                if answer and answer.yes and answer.body["live"]:
                    return answer.body
            await asyncio.sleep(PAUSE_S)

    async def workers(self) -> int:
        """Return how many workers the leader hears."""
        answer = await self.ask("/api/cluster")
        return len(answer.body["workers"]) if answer.yes else 0

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Ask all masters in turn until one answers yes or no."""
        while True:
            for name in self._urls:
                answer = await self.ask_one(name, path, body)
                if answer and answer.status not in (421, 503):
                    return answer
            await asyncio.sleep(PAUSE_S)

    async def remove(self, path: str) -> Answer:
        """Ask all masters in turn to remove something until one answers yes or no."""
        while True:
            for name in self._urls:
                answer = await asyncio.to_thread(self._request, name, path, None, "DELETE")
                if answer and answer.status not in (421, 503):
                    return answer
            await asyncio.sleep(PAUSE_S)

    async def ask_one(
        self, name: str, path: str, body: dict[str, Any] | None = None
    ) -> Answer | None:
        """Ask one master once; None if it does not answer."""
        return await asyncio.to_thread(self._request, name, path, body)

    def _request(
        self, name: str, path: str, body: dict[str, Any] | None, method: str | None = None
    ) -> Answer | None:
        data = None if body is None else json.dumps(body).encode()
        # A standby is to say so, not to hand the request on: a test asks this very master.
        headers = {"Authorization": f"Bearer {self._token}", "holdfast-follows": "1"}
        request = urllib.request.Request(self._urls[name] + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_S) as answer:
                return Answer(name, answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(name, error.code, json.load(error))
        except OSError:
            return None

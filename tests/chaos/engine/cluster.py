"""A cluster of real processes: masters, workers, a store, and networks that can be broken."""

import asyncio
import shutil
import sys
from pathlib import Path
from time import monotonic

from holdfast.core.election import ACT_SHARE
from holdfast.store.contract import Store
from holdfast.store.open import open_store
from tests.chaos.engine.ledger import SLOTS, Ledger
from tests.chaos.engine.modes import EVERY
from tests.chaos.engine.points import Points
from tests.chaos.engine.process import Process
from tests.chaos.engine.proxy import Proxy
from tests.chaos.engine.servers import SERVERS, Server, free_ports
from tests.chaos.engine.sinks import SinkKind
from tests.oracle.events import Setting

MASTERS = {"sqlite": ("M1",), "etcd": ("M1", "M2", "M3"), "postgres": ("M1", "M2")}
WORKERS = ("W1", "W2")
TOKEN = "chaos-token-chaos-token-chaos-token"
LOOK_S = 0.05

FAST = {
    "lease_s": 2.0,
    "campaign_s": 0.2,
    "interval_s": 1.0,
    "timeout_s": 20.0,
    "worker_lost_s": 4.0,
    "progress_s": 20.0,
    "tombstone_s": 2.0,
    "orphan_s": 60.0,
    "beat_s": 0.3,
}

PATIENT = {"worker_lost_s": 8.0, "progress_s": 120.0, "timeout_s": 60.0, "orphan_s": 300.0}
"""For runs whose own kills leave Spark cold again and again, on a machine that may be busy."""


class Cluster:
    """The processes of one run, in a folder."""

    def __init__(self, kind: str, folder: Path, settings: dict[str, float] | None = None) -> None:
        self.kind = kind
        self.folder = folder
        self.settings = {**FAST, **(settings or {})}
        self.events = folder / "events"
        for part in ("events", "blobs", "store", "out", "logs"):
            (folder / part).mkdir(parents=True)
        self.points = Points(folder / "points")
        self.server: Server = SERVERS[kind](folder / "store")
        self.ledger = Ledger()
        self.masters: dict[str, Process] = {}
        self.workers: dict[str, Process] = {}
        self.ports: dict[str, int] = {}
        self.to_store: dict[str, Proxy] = {}
        self.to_master: dict[tuple[str, str], Proxy] = {}
        self._sinks: dict[str, SinkKind] = {}
        self._store: Store | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start everything."""
        await asyncio.to_thread(self.server.start)
        names = MASTERS[self.kind]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        for name in names:
            await self._add_master(name)
        for name in WORKERS:
            await self._add_worker(name)
        for process in (*self.masters.values(), *self.workers.values()):
            process.start()
        self._store = await open_store(self.server.url(self.server.port))
        self._watching = asyncio.ensure_future(self.ledger.watch(self._store))

    async def close(self) -> None:
        """End everything, by force."""
        for process in (*self.workers.values(), *self.masters.values()):
            process.kill()
        if self._watching:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._store:
            await self._store.close()
        for proxy in (*self.to_store.values(), *self.to_master.values()):
            proxy.close()
            await proxy.closed()
        await asyncio.to_thread(self.server.remove)
        for sink in self._sinks.values():
            await asyncio.to_thread(sink.close)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def urls(self) -> dict[str, str]:
        """Where clients reach each master."""
        return {name: f"http://127.0.0.1:{port}" for name, port in self.ports.items()}

    @property
    def running(self) -> bool:
        """Whether the watch of the store still runs; it ends only by an error."""
        return self._watching is not None and not self._watching.done()

    def setting(self) -> Setting:
        """Return how patient everyone is, for the oracle."""
        s = self.settings
        return Setting(
            at=monotonic(), process="world", lease_s=s["lease_s"], act_s=s["lease_s"] * ACT_SHARE,
            tombstone_s=s["tombstone_s"], interval_s=s["interval_s"], timeout_s=s["timeout_s"],
            worker_lost_s=s["worker_lost_s"], orphan_s=s["orphan_s"], lossy=False,
        )  # fmt: skip

    def sink(self, name: str) -> SinkKind:
        """Return a kind of sink; `start` it before it is used."""
        if name not in self._sinks:
            self._sinks[name] = EVERY[name](self.folder / "sinks" / name)
        return self._sinks[name]

    def process(self, name: str) -> Process:
        """Return a process by its name."""
        return self.masters[name] if name in self.masters else self.workers[name]

    def heal(self) -> None:
        """End every trouble and bring everything back."""
        self.points.clear()
        self.server.start() if self.server.process is None else None
        for proxy in (*self.to_store.values(), *self.to_master.values()):
            proxy.heal()
        for process in (*self.masters.values(), *self.workers.values()):
            process.go_on()
            process.start()

    async def _add_master(self, name: str) -> None:
        port = self.server.port
        if port:
            self.to_store[name] = Proxy(port)
            await self.to_store[name].start()
            port = self.to_store[name].port
        environ = self._environ(name) | {
            "HOLDFAST_STORE": self.server.url(port),
            "HOLDFAST_BLOBS": str(self.folder / "blobs"),
            "HOLDFAST_LISTEN": f"127.0.0.1:{self.ports[name]}",
            "HOLDFAST_MASTERS": ",".join(self.urls.values()),
        }
        self.masters[name] = Process(name, "master", environ, self.folder / "logs")

    async def _add_worker(self, name: str) -> None:
        for master in self.masters:
            self.to_master[(name, master)] = Proxy(self.ports[master])
            await self.to_master[(name, master)].start()
        ports = [self.to_master[(name, master)].port for master in self.masters]
        environ = self._environ(name) | {
            "HOLDFAST_MASTERS": ",".join(f"http://127.0.0.1:{port}" for port in ports),
            "HOLDFAST_SLOTS": str(SLOTS),
            "HOLDFAST_CORES": "1",
        }
        self.workers[name] = Process(name, "worker", environ, self.folder / "logs")

    def _environ(self, name: str) -> dict[str, str]:
        patience = {f"HOLDFAST_{k.upper()}": str(v) for k, v in self.settings.items()}
        return patience | {
            "HOLDFAST_NAME": name,
            # Start Spark from a cache that is there, and make none: that would cost a core.
            "HOLDFAST_AOT": "use",
            "HOLDFAST_TOKEN": TOKEN,
            "HOLDFAST_LOGS": str(self.folder / "logs" / name),
            "HOLDFAST_EVENTS": str(self.events),
            "HOLDFAST_FAILPOINTS": str(self.points.folder),
            "HOLDFAST_FAILPOINTS_NAME": name,
            "PYTHONPATH": str(Path(sys.modules["holdfast"].__path__[0]).parent),
        }

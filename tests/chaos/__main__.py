"""`python -m tests.chaos STORE [--only E03,E04] [--side 2]`: see docs/chaos.md."""

import argparse
import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

from holdfast.errors import UserError
from tests.chaos.engine import failover, side
from tests.chaos.engine.catalogue import beginning, chosen, part
from tests.chaos.engine.run import Result, Runner, write_down
from tests.chaos.engine.servers import SERVERS

BUILD = Path("build/chaos")


def main() -> int:
    """Run the chosen scenarios, or the failover measurement; return the exit code."""
    asked = _asked()
    # However it is ended, the cluster goes with it.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return _run(asked)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if asked.told is None:
            print("Ended from outside; what was found by then is above.", file=sys.stderr)
        return 130


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kill real processes, and see what comes of it.")
    parser.add_argument("store", choices=sorted(SERVERS))
    parser.add_argument("--only", default="", help="windows, such as E03,E04; all by default")
    parser.add_argument("--first", default="", help="begin with this window, such as E03")
    parser.add_argument("--part", default="", help="2/5: the second of five equal parts")
    parser.add_argument("--side", type=int, default=1, help="so many clusters side by side")
    parser.add_argument("--kills", type=int, default=0, help="measure so many failovers instead")
    parser.add_argument("--list", action="store_true", help="list the scenarios and end")
    parser.add_argument("--told", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--ids", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(asked: argparse.Namespace) -> int:
    only = [w for w in asked.only.replace(",", " ").split() if w]
    scenarios = part(beginning(chosen(asked.store, only), asked.first), asked.part)
    if asked.list:
        print("\n".join(s.id for s in scenarios))
        return 0
    if asked.kills:
        return asyncio.run(failover.measure(asked.store, asked.kills, BUILD))
    if asked.told is not None:
        # One of several side by side: whoever began it hears of each result.
        mine = [s for s in scenarios if s.id in asked.ids.split(side.BETWEEN)]
        folder = BUILD / f"side-{os.getpid()}"
        asyncio.run(Runner(asked.store, folder).run(mine, side.teller(asked.told)))
        if not any(folder.iterdir()):
            folder.rmdir()
        return 0
    summary = side.Summary(asked.store, len(scenarios))
    path = BUILD / f"{asked.store}.json"

    def said(result: Result) -> None:
        summary.add(result)
        write_down(summary.results, path)  # also what was found by a run that is ended early

    try:
        for former in (*BUILD.glob("side-*"), *BUILD.glob(f"{asked.store}-*")):
            shutil.rmtree(former, ignore_errors=True)
        if asked.side > 1:
            side.run(asked.store, scenarios, asked.side, said)
        else:
            asyncio.run(Runner(asked.store, BUILD).run(scenarios, said))
    finally:
        print(summary.text(), flush=True)
    return 0 if summary.good else 1


if __name__ == "__main__":
    sys.exit(main())

"""`python -m holdfast.testing.chaos STORE [--only E03,E04] [--kills N]`: see docs/chaos.md."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from holdfast.testing.chaos import failover
from holdfast.testing.chaos.catalogue import chosen
from holdfast.testing.chaos.run import Runner, write_down
from holdfast.testing.chaos.servers import SERVERS

BUILD = Path("build/chaos")


def main() -> int:
    """Run the chosen scenarios, or the failover measurement; return the exit code."""
    parser = argparse.ArgumentParser(description="Kill real processes, and see what comes of it.")
    parser.add_argument("store", choices=sorted(SERVERS))
    parser.add_argument("--only", default="", help="windows, such as E03,E04; all by default")
    parser.add_argument("--kills", type=int, default=0, help="measure so many failovers instead")
    parser.add_argument("--list", action="store_true", help="list the scenarios and end")
    asked = parser.parse_args()
    # However it is ended, the cluster goes with it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    only = [w for w in asked.only.replace(",", " ").split() if w]
    scenarios = chosen(asked.store, only)
    if asked.list:
        print("\n".join(s.id for s in scenarios))
        return 0
    if asked.kills:
        return asyncio.run(failover.measure(asked.store, asked.kills, BUILD))
    results = asyncio.run(Runner(asked.store, BUILD).run(scenarios))
    write_down(results, BUILD / f"{asked.store}.json")
    hit, good = sum(r.window_hit for r in results), sum(r.ok for r in results)
    print(f"{asked.store}: {len(results)} scenarios, {hit} windows hit, {good} ok.")
    return 0 if results and good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())

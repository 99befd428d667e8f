"""What a store in a file needs to know of the machine it runs on.

All processes of a machine share one clock that never goes back, and it starts at 0 with each boot.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MOUNTS = Path("/proc/self/mountinfo")
NETWORK_KINDS = (
    "nfs", "cifs", "smb", "afs", "ceph", "gluster", "lustre", "beegfs", "gpfs", "fuse.sshfs",
    "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs",
)  # fmt: skip


@dataclass(frozen=True)
class HostInfo:
    """A machine as a store sees it: the name of its present boot, and its clock."""

    boot: str
    seconds: Callable[[], float]


def this_machine() -> HostInfo:
    """Return the machine this process runs on."""
    return HostInfo(boot_id(), uptime_s)


def uptime_s() -> float:
    """Return the seconds since this machine started, sleep included where the system reports it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """Return a name of this boot; empty where the system has none."""
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""


def network_kind(folder: Path) -> str | None:
    """Return the kind of network file system a folder is on; None if it is local or unknown."""
    if not MOUNTS.exists():
        return None
    place = os.path.realpath(folder)
    best, kind = "", ""
    for line in MOUNTS.read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind if kind.startswith(NETWORK_KINDS) else None

"""How messages look on the wire: MessagePack, one frame a message, read strictly.

A frame is `[version, type, fields]`.  A version or type this code does not know, a missing field or
a value of another type is an error, never a guess: the link is closed, and both sides say why.
"""

from collections.abc import Mapping

import msgspec

from holdfast.errors import HoldfastError
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    HeartbeatAck,
    LookAtJob,
    Looked,
    SourceEndAck,
    SourceEndReport,
    StopTask,
    ToLeader,
    ToWorker,
)

VERSION = 2
"""1: before messages had the names of `MESSAGES`."""
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""The largest frame: an answer to a barrier may list very many files."""

MESSAGES: Mapping[str, type[ToWorker | ToLeader]] = {
    "Barrier": Barrier,
    "BarrierAck": BarrierAck,
    "DeployTask": DeployTask,
    "SourceEndAck": SourceEndAck,
    "SourceEndReport": SourceEndReport,
    "Heartbeat": Heartbeat,
    "LookAtJob": LookAtJob,
    "Looked": Looked,
    "StopTask": StopTask,
    "HeartbeatAck": HeartbeatAck,
}
"""What a message is called on the wire.  A class may be renamed; its name here may not."""

NAMES = {kind: name for name, kind in MESSAGES.items()}

_DECODERS: dict[str, "msgspec.msgpack.Decoder[ToWorker | ToLeader]"] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in MESSAGES.items()
}
_ENCODER = msgspec.msgpack.Encoder()
_FRAME = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])


class FrameUnreadable(HoldfastError):
    """A frame is damaged, or from a Holdfast of another version."""


def encode(message: ToWorker | ToLeader) -> bytes:
    """Return a message as one frame."""
    return _ENCODER.encode((VERSION, NAMES[type(message)], message))


def decode(frame: bytes) -> ToWorker | ToLeader:
    """Read a frame.  Raises `FrameUnreadable` rather than guess."""
    try:
        version, name, body = _FRAME.decode(frame)
        if version != VERSION:
            raise FrameUnreadable(
                f"A message has version {version}; this Holdfast knows {VERSION}. Run the same"
                " version on masters and workers.",
                code="wire.version",
            )
        if name not in _DECODERS:
            raise FrameUnreadable(f"There is no message '{name}'.", code="wire.unknown")
        return _DECODERS[name].decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameUnreadable(f"A message cannot be read: {error}.", code="wire.damaged") from error

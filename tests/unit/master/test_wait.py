"""Long work of a master leaves its loop to others now and then."""

import asyncio

from holdfast.master.wait import TOGETHER, unhurried


def test_whoever_works_through_many_lets_others_run() -> None:
    async def run() -> tuple[list[int], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.ensure_future(beat())
        seen = [n async for n in unhurried(range(10 * TOGETHER))]
        beating.cancel()
        return seen, beats

    seen, beats = asyncio.run(run())
    assert seen == list(range(10 * TOGETHER))
    assert beats >= 10

"""Gather what a job that is over has not finished, for an answer."""

import asyncio
from dataclasses import replace

from holdfast.api.service import Api
from holdfast.errors import HoldfastError
from holdfast.master import checkpoint_content
from holdfast.master.accept import told
from holdfast.master.unfinished import Unfinished, blobs_of, unfinished, ways
from holdfast.plan.masking import masked_text

READ_S = 2.0
"""So long an answer waits for a checkpoint.  What is staged is then left out."""


async def unfinished_of(api: Api, job_id: str) -> tuple[tuple[Unfinished, ...], tuple[str, ...]]:
    """Return it, commit by commit, and how to finish or remove it."""
    job = await api.record(job_id)
    if not job.abandoned:
        return (), ()
    vault = (await api.leader()).vault
    lives = [(job.id, job.incarnation)]
    lives += [(a.life.partition("/")[0], a.life.partition("/")[2]) for a in job.abandoned if a.life]
    saved = next((s for s in (vault.keeps(*life) for life in lives) if s), None)
    contents = {}
    for name in blobs_of(job) if saved else ():
        try:
            async with asyncio.timeout(READ_S):
                contents[name] = checkpoint_content.read(await api.blobs.get(name))
        except (HoldfastError, TimeoutError):
            continue
    past = vault.past(saved) if saved else []
    found = ways(job, saved, masked_text(told(past[0])) if past else "")
    left = tuple(
        replace(one, staged=tuple(masked_text(name) for name in one.staged))
        for one in unfinished(job, contents)
    )
    return left, found

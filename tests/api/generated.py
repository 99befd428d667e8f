"""Thousands of requests made up from the OpenAPI document: no 5xx, no answer it does not promise.

Not part of `make test`; `make api` runs it.
"""

import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path

from tests.api.served import TOKEN, Served, served
from tests.api.test_fields import populate
from tests.api.test_links_attacked import listening

CASES = 2_000
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)


def test_generated_requests_find_no_5xx_and_no_undocumented_answer(tmp_path: Path) -> None:
    ready, over = threading.Event(), threading.Event()
    address: list[str] = []

    async def test(master: Served) -> None:
        await populate(master)
        async with listening(master) as found:
            address.append(found.removesuffix("/link"))
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.05)

    serving = threading.Thread(
        target=lambda: served(tmp_path, test, log_file=tmp_path / "master.log"), daemon=True
    )
    serving.start()
    assert ready.wait(120)
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [program, "run", f"http://{address[0]}/openapi.json", "--checks", CHECKS,
         "-H", f"Authorization: Bearer {TOKEN.reveal()}", "--phases", "coverage,fuzzing",
         "--max-examples", "25", "--exclude-path", "/api/changes", "--continue-on-failure",
         "--no-color"],
        cwd=tmp_path, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    over.set()
    serving.join(60)
    counted = re.search(r"(\d[\d,]*) generated, (\d[\d,]*) passed", done.stdout)
    assert done.returncode == 0 and counted, done.stdout[-5000:] + done.stderr[-2000:]
    generated, passed = (int(n.replace(",", "")) for n in counted.groups())
    print(f"{generated} cases, {passed} passed")
    assert generated == passed and generated >= CASES

"""A test that never ends, for `test_orphans.py`; pytest does not collect it by itself."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midwatch_tests.harness import RunHarness


async def test_a_monitor_is_at_work(harness: "RunHarness") -> None:
    process = await harness.start("monitor", "--journal", str(harness.journal.name))
    assert process.stdout is not None
    await process.stdout.readline()
    sys.stderr.write(f"{process.pid}\n")
    sys.stderr.flush()
    await process.wait()

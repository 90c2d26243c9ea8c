"""A process that is a node to the broker and does nothing else: `SETTINGS STATUS NAME`, as JSON.

It prints `up` once it is connected, and ends when its input does.
"""

import asyncio
import os
import sys

from midwatch_monitor.bus.mqtt import MqttBus
from midwatch_monitor.bus.payload import decode_status
from midwatch_monitor.config.fleet import FleetSettings


async def main(settings: str, status: str, name: str) -> None:
    """Be there."""
    async with MqttBus(
        FleetSettings.model_validate_json(settings),
        name=name,
        status=decode_status(status.encode(), name),
        environ=os.environ,
    ) as bus:
        while not bus.counters.connected:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

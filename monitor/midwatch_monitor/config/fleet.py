"""Settings for several machines: the broker, the nodes, and their time limits."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from midwatch_monitor.config.section import Name, Refusal, Seconds, Section
from midwatch_monitor.records import LOST_AFTER_SECONDS

MISSED_BEATS = 3
"""Heartbeats that a node must be able to miss before it is lost: a single one may be late."""


class BrokerSettings(Section):
    """The MQTT broker. It carries only hints: without it everything works the same, but later."""

    url: Annotated[str, Field(pattern=r"^(mqtts?://[^/?#@\s]+)?$")] = ""
    """`mqtt://host:1883`, or `mqtts://host:8883` for TLS; empty for no broker."""
    username: str = ""
    """The account; empty for the name of the node, monitor or console itself, as the shipped access
    list requires.
    """
    password_env: str = "MIDWATCH_BROKER_PASSWORD"
    """The environment variable with the password."""
    password_file: Path | None = None
    """A file with only the password; it takes precedence over the variable."""
    ca_file: Path | None = None
    """The certificate of the authority that signed the broker's; by default the system's."""
    keepalive_seconds: Annotated[int, Field(ge=2, le=3600)] = 10
    """After one and a half times this long without a sign, the broker publishes the last will."""
    session_seconds: Annotated[int, Field(ge=0, le=604_800)] = 3600
    """How long the broker keeps hints for an absent process."""
    max_wait_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 30.0
    """The longest pause between two tries to connect."""
    max_payload_bytes: Annotated[int, Field(ge=1024, le=16_777_216)] = 65_536
    """Longer messages are counted but not read; our own are split."""
    max_waiting: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """How many hints may wait to be sent; beyond that the oldest is dropped."""


class FleetSettings(Section):
    """Nodes and monitors that share one journal."""

    name: Name = "midwatch"
    """The fleet's name in topics and queues."""
    broker: BrokerSettings = BrokerSettings()
    slots: Annotated[int, Field(ge=1, le=1000)] = 4
    """Concurrent attempts on one node; `--slots` overrides it for one node."""
    labels: Annotated[tuple[Name, ...], Field(max_length=6)] = ()
    """Abilities that not every node has; tasks ask for them. `--label` adds to them."""
    beat_seconds: Seconds = 1.0
    """How often a node writes a heartbeat to the journal."""
    lost_after_seconds: Seconds = LOST_AFTER_SECONDS
    """A node not heard from for this long is lost, and others take over its attempts. If the broker
    publishes its last will, two missed heartbeats are enough.
    """
    lease_seconds: Seconds = 15.0
    """A monitor that has not renewed its leases for this long loses them to another. On PostgreSQL
    a run has a lease too: without renewal, its process is gone, and `resume` can continue it.
    """
    save_seconds: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    """How often an attempt's files are saved, so that another node can take it over. 0 saves before
    every model request.
    """
    max_bundle_mb: Annotated[float, Field(gt=0, le=1000)] = 50.0
    """The largest saved work stored in the journal; larger work moves only by `push`."""
    push: bool = False
    """Whether saved work is pushed to the repository's `origin` as branches instead of the journal.
    """
    drain_seconds: Annotated[float, Field(ge=0, le=604_800)] = 300.0
    """How long a node that is told to stop lets its attempts continue before it gives them back."""
    keep_days: Annotated[float, Field(ge=0, le=3650)] = 7.0
    """How long a node keeps the worktrees of a task's attempts after the task's end."""

    @model_validator(mode="after")
    def _lost_only_after_some_beats(self) -> Self:
        """Refuse times with which a live node would be lost between two heartbeats."""
        least = MISSED_BEATS * self.beat_seconds
        if self.lost_after_seconds < least:
            raise Refusal(
                f"must be at least {MISSED_BEATS} times beat_seconds: {least:g} or more",
                at=("lost_after_seconds",),
            )
        return self

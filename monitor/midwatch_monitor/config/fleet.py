"""Several machines: the broker, the nodes, and how long who is waited for."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from midwatch_monitor.config.section import Name, Refusal, Seconds, Section
from midwatch_monitor.records import LOST_AFTER_SECONDS

MISSED_BEATS = 3
"""Beats that a node must be able to miss before it is lost: one may be late by itself."""


class BrokerSettings(Section):
    """The MQTT broker. It carries hints only: without one everything is the same, and later."""

    url: Annotated[str, Field(pattern=r"^(mqtts?://[^/?#@\s]+)?$")] = ""
    """`mqtt://host:1883`, or `mqtts://host:8883` for TLS; empty for no broker."""
    username: str = ""
    """Who logs in; empty for the name of the node, monitor or console itself, as the shipped
    access list wants it."""
    password_env: str = "MIDWATCH_BROKER_PASSWORD"
    """The environment variable that holds the password."""
    password_file: Path | None = None
    """A file that holds the password and nothing else; it goes before the variable."""
    ca_file: Path | None = None
    """The certificate of the authority that signed the broker's; the system's if not given."""
    keepalive_seconds: Annotated[int, Field(ge=2, le=3600)] = 10
    """After one and a half times as long without a sign the broker gives out the last will."""
    session_seconds: Annotated[int, Field(ge=0, le=604_800)] = 3600
    """How long the broker keeps hints for who is away."""
    max_wait_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 30.0
    """The longest pause between two tries to connect."""
    max_payload_bytes: Annotated[int, Field(ge=1024, le=16_777_216)] = 65_536
    """Longer messages are counted and not read; our own are cut into shorter ones."""
    max_waiting: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Hints that wait to be sent; beyond that the oldest is dropped."""


class FleetSettings(Section):
    """Nodes and monitors that share one journal."""

    name: Name = "midwatch"
    """What the fleet is called in topics and queues."""
    broker: BrokerSettings = BrokerSettings()
    slots: Annotated[int, Field(ge=1, le=1000)] = 4
    """Attempts at the same time on one node; `--slots` says otherwise for one."""
    labels: tuple[Name, ...] = ()
    """What a node can do that not every one can; tasks ask for it. `--label` adds to them."""
    beat_seconds: Seconds = 1.0
    """How often a node says in the journal that it lives."""
    lost_after_seconds: Seconds = LOST_AFTER_SECONDS
    """A node that was not heard for so long is lost, and others go on with its attempts.

    Where the broker gives out its last will, two missed beats are enough.
    """
    lease_seconds: Seconds = 15.0
    """A monitor that did not renew its leases for so long loses them to another."""
    save_seconds: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    """How often an attempt's files are saved, so that another node can go on with them.

    0 saves before every model request.
    """
    max_bundle_mb: Annotated[float, Field(gt=0, le=1000)] = 50.0
    """The largest saved work that goes into the journal; what is larger cannot move to a node."""
    push: bool = False
    """Whether saved work goes to the repository's `origin` as branches, not into the journal."""
    drain_seconds: Annotated[float, Field(ge=0, le=604_800)] = 300.0
    """How long a node that is told to stop lets its attempts go on before it gives them back."""
    keep_days: Annotated[float, Field(ge=0, le=3650)] = 7.0
    """How long after the end of a task a node keeps the worktrees of its attempts."""

    @model_validator(mode="after")
    def _lost_only_after_some_beats(self) -> Self:
        """Refuse times by which a node that lives would be lost between two beats."""
        least = MISSED_BEATS * self.beat_seconds
        if self.lost_after_seconds < least:
            raise Refusal(
                f"must be at least {MISSED_BEATS} times beat_seconds: {least:g} or more",
                at=("lost_after_seconds",),
            )
        return self

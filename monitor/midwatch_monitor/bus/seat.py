"""As which client the broker knows this process, also where another one has the same name.

A broker ends the connection of a client whose id another one brings. If both came back by that id,
each would end the other's for ever.
"""

from midwatch_monitor.errors import LinkError, LinkFault

_SOON = 5.0
"""Seconds. A broker that tells no reason ends one connection like any other that is lost; who comes
back at once and finds the next one ended within this time has somebody who comes back as well."""
_GUESSED = "so it seems: it ended two connections, one soon after the other, and said no reason"


class Seat:
    """The client id in use. The one that was given is left to others as soon as one of them comes
    by it, and is not taken again."""

    def __init__(self, client: str, *, own: str) -> None:
        """Begin with `client`; `own` is an id that nobody else comes by. An empty `client` lets the
        broker make ids up, which nobody else can come by either."""
        self.client = client
        self.kept = bool(client)
        """Whether what comes while this process is away is worth keeping: nobody comes back for
        what is kept for an id that ends with its process."""
        self._own = own
        self._ended = False

    def ended(self, error: LinkError, *, after: float) -> LinkError:
        """What it means that a connection, or a try to make one, has ended after so many seconds:
        that there is none, that we are refused, or that the given id is somebody else's from here
        on, which is said once."""
        ended = error.fault is LinkFault.ENDED
        guessed = ended and self._ended and after < _SOON
        self._ended = ended
        if self.kept and (guessed or error.fault is LinkFault.TAKEN_OVER):
            self.client, self.kept = self._own, False
            return LinkError(LinkFault.TAKEN_OVER, _GUESSED if guessed else str(error))
        if error.fault is LinkFault.REFUSED:
            return error
        return LinkError(LinkFault.AWAY, str(error))

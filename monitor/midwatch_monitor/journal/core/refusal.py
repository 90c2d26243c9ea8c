"""A database's answer that it lets nobody in so, and what a person can do about it. Pure.

Its words are all that there is: of a connection that was not made the driver has no code. Those
of a server that speaks another language are not known here; it is waited for like one that is
away, which takes longer and ends in the same words.
"""

import re

_STARTS = (
    "starting up",
    "shutting down",
    "recovery",
    "not yet accepting",
    "not currently accepting",
    "too many",
    "connection slots",
)
"""In what a server says that will soon let one in."""
_PASSWORD = (
    "it is taken from the URL (its special characters written as in %40 for @), from PGPASSWORD "
    "or from ~/.pgpass"
)
_ANSWERS = (
    ("password authentication failed", f"is the password right? {_PASSWORD}"),
    ("no password supplied", f"give one: {_PASSWORD}"),
    ("not permitted to log in", "name another role in the URL, or `ALTER ROLE … LOGIN`"),
    ("permission denied for database", "its owner can `GRANT CONNECT ON DATABASE … TO …`"),
    ("no encryption", "is it TLS that is missing (`?sslmode=require`)? Else see its pg_hba.conf"),
    ("pg_hba.conf", "a line of the server's pg_hba.conf must let this role in from here"),
    ('role "', "name another role in the URL, or make this one: `createuser --pwprompt`"),
    ('database "', "name another database in the URL, or make this one: `createdb`"),
    ("authentication failed for user", "see the lines for this role in the server's pg_hba.conf"),
    ("does not support SSL", "switch `ssl` on there, or leave `sslmode` out of the URL"),
    ("certificate verify failed", "`sslrootcert` must name the authority that signed for it"),
    ("root certificate file", "`sslrootcert` must name the authority that signed for the server"),
    ("server certificate for", "name the server in the URL as its certificate does"),
    ("unrecognized configuration parameter", "see the `options` in the URL"),
    ("invalid value for parameter", "see the `options` in the URL"),
    ("unsupported startup parameter", "a pooler is between: name the server itself in the URL"),
    ("invalid response to SSL", "is that PostgreSQL's port? Something else answers there"),
    ("expected authentication request", "is that PostgreSQL's port? Something else answers there"),
    ("invalid connection option", "see what stands behind the ? of the URL"),
    ("bad value for connect_timeout", "it is a number of seconds"),
    ("invalid port number", "ports are from 1 to 65535"),
    ("invalid sslmode value", "disable, prefer, require, verify-ca and verify-full are known"),
)
"""In what is said, and what to do then; the first that fits."""
_AROUND = re.compile(
    r"connection (?:failed|is bad): |connection to server (?:at|on) .*? failed: |FATAL: +|\n"
)


def advice_on(said: str) -> str:
    """What to do about an answer that no waiting changes; empty for everything else."""
    if any(each in said for each in _STARTS):
        return ""
    return next((advice for part, advice in _ANSWERS if part in said), "")


def reason_in(said: str) -> str:
    """What a server answered, without what the driver puts around it, and once.

    The driver asks twice, with TLS and without, and each of the addresses of a host.
    """
    parts = (" ".join(part.split()) for part in _AROUND.split(said))
    return "; ".join(dict.fromkeys(part for part in parts if part))

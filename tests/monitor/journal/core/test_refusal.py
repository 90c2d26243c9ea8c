"""What a server answers to who is not let in, and what a person can do about it."""

import pytest

from midwatch_monitor.journal.core.outage import advice_on, reason_in

AT = 'connection to server at "db", port 5432 failed: '


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (f'{AT}FATAL:  password authentication failed for user "ann"', "is the password right?"),
        (f"{AT}fe_sendauth: no password supplied", "supply one: "),
        (f'{AT}FATAL:  role "ann" does not exist', "name another role"),
        (f'{AT}FATAL:  role "ann" is not permitted to log in', "name another role"),
        (f'{AT}FATAL:  database "x" does not exist', "name another database"),
        (f'{AT}FATAL:  permission denied for database "x"\nDETAIL:  …', "its owner can `GRANT CON"),
        (
            f'{AT}FATAL:  no pg_hba.conf entry for host "h", user "a", database "x", no encryption',
            "is TLS missing",
        ),
        (
            f'{AT}FATAL:  no pg_hba.conf entry for host "h", user "a", database "", SSL encryption',
            "a line of the server's pg_hba.conf",
        ),
        (f'{AT}FATAL:  Peer authentication failed for user "ann"', "see the lines for this role"),
        (f"{AT}server does not support SSL, but SSL was required", "turn on `ssl` there"),
        (f"{AT}SSL error: certificate verify failed", "`sslrootcert` must name the authority"),
        (f'{AT}root certificate file "/x.crt" does not exist', "`sslrootcert` must name"),
        (f'{AT}server certificate for "a" does not match host name "db"', "name the server"),
        (f"{AT}received invalid response to SSL negotiation: H", "is that PostgreSQL's port?"),
        (f"{AT}FATAL:  unsupported startup parameter: options", "that is a pooler"),
        ('connection is bad: invalid sslmode value: "on"', "use disable, prefer, require"),
        ('connection is bad: invalid port number: "99999"', "ports are from 1"),
    ],
)
def test_an_answer_comes_with_what_to_do(said: str, advice: str) -> None:
    assert advice_on(said).startswith(advice)


@pytest.mark.parametrize(
    "said",
    [
        f"{AT}FATAL:  the database system is starting up",
        f"{AT}FATAL:  the database system is not yet accepting connections",
        f"{AT}FATAL:  sorry, too many clients already",
        f'{AT}FATAL:  too many connections for role "ann"',
        f'{AT}FATAL:  too many connections for database "x"',
        f"{AT}FATAL:  remaining connection slots are reserved for roles with the SUPERUSER",
        f'{AT}FATAL:  database "x" is not currently accepting connections',
        f"{AT}Connection refused\n\tIs the server running on that host?",
        f"{AT}server closed the connection unexpectedly",
        "failed to resolve host 'db': [Errno -3] Temporary failure in name resolution",
        "connection timeout expired",
    ],
)
def test_what_may_pass_is_no_refusal(said: str) -> None:
    assert advice_on(said) == ""


def test_what_the_driver_was_told_twice_is_said_once() -> None:
    said = f'connection failed: {AT}FATAL:  database "x" does not exist\n'
    assert reason_in(said + said.removeprefix("connection failed: ")) == (
        'database "x" does not exist'
    )
    other = f"{AT}server does not support SSL, but SSL was required"
    assert reason_in(said + other) == (
        'database "x" does not exist; server does not support SSL, but SSL was required'
    )

"""A PostgreSQL server of one's own, which may be killed.

It listens on loopback only, trusts everybody there, and has its data in memory where there is room;
elsewhere it does not wait for the disk. What it has committed outlives `kill -9`, though not a
power loss. Everything here blocks, for a second or two where a server starts: within asyncio, use a
thread.
"""

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

from midwatch_tests.ports import free_port

USER = "midwatch"
"""The role that owns everything; it has no password."""
_SCHEME = "postgresql"
_START_SECONDS = 120
_PLAIN_USERS = ("postgres", "daemon")
_MEMORY = Path("/dev/shm")
"""A file system in memory: to make a database there takes a tenth of the CPU of one on a disk."""
_ROOM = 2**30
"""Bytes that must be free there; containers often have 64 MiB in all."""
_PREFIX = "midwatch-postgres-"
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "300",
    "shared_buffers": "32MB",
    # In its folder, which is removed with it. Otherwise each server that is killed leaves some.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
    "log_destination": "stderr",
}


def programs() -> Path | None:
    """The folder with the newest PostgreSQL's programs; `None` where there is none."""
    folders = list(Path("/usr/lib/postgresql").glob("*/bin"))
    newest = sorted(folders, key=lambda each: int(each.parent.name.partition(".")[0]), reverse=True)
    in_path = shutil.which("initdb")
    if in_path:
        newest.insert(0, Path(in_path).parent)
    complete = [each for each in newest if (each / "initdb").exists()]
    return complete[0] if complete else None


def create_database(server: str, name: str, *, like: str = "template1") -> str:
    """Make a new database on the server with that SQLAlchemy URL, empty or like another; its URL.

    Nobody may be connected to that other.
    """
    words = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    _tell(server, words.format(sql.Identifier(name), sql.Identifier(like)))
    return f"{server.rpartition('/')[0]}/{name}"


def drop_database(server: str, name: str) -> None:
    """Drop a database, whoever is still connected to it."""
    _tell(server, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _tell(server: str, what: sql.Composed) -> None:
    with psycopg.connect(_plain(server), autocommit=True) as connection:
        connection.execute(what)


def _plain(url: str) -> str:
    """A SQLAlchemy URL as PostgreSQL itself has it."""
    return "postgresql://" + url.partition("://")[2]


class Database:
    """A running server. As a context manager it is stopped at the end, and its folder removed."""

    def __init__(self, programs: Path, folder: Path, port: int, *, durable: bool) -> None:
        """Use `start`."""
        self._options = _OPTIONS | ({"fsync": "on"} if durable else {})
        self._programs = programs
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path | None = None, *, durable: bool = False) -> Self:
        """Set up a new server with its data in `folder`, and start it.

        A `durable` one waits for the disk, as servers do in earnest: for what is measured.

        PostgreSQL refuses to run as root: it runs as a plain user then, and where that user could
        not enter `folder` (pytest's are for root alone), or none is given, in a temporary one.
        Raises FileNotFoundError where PostgreSQL is not installed.
        """
        found = programs()
        if found is None:
            raise FileNotFoundError("PostgreSQL is not installed")
        home = _home(folder, in_memory=not durable)
        server = cls(found, home, free_port(), durable=durable)
        server._set_up()
        try:
            server.restart()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def url(self) -> str:
        """Of its database `postgres`, for SQLAlchemy."""
        return f"{_SCHEME}://{USER}@127.0.0.1:{self._port}/postgres"

    @property
    def port(self) -> int:
        return self._port

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self._folder / "log").read_text(errors="replace")

    def create(self, name: str) -> str:
        """Make a new empty database; its URL."""
        return create_database(self.url, name)

    def restart(self) -> None:
        """Start it again after `kill` or `halt`, on the same port; ready when this returns."""
        if self._process is not None:
            self.halt()
        command = [self._programs / "postgres", "-D", self._data, "-p", str(self._port)]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            user = _plain_user()
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=user,
                group=user,
                start_new_session=True,  # Ctrl-C is for the tests, which end it
            )
        _await(self._answers)

    def kill(self) -> None:
        """`kill -9` all of its processes at once, as if the machine were gone."""
        process = self._process
        if process is None:
            return
        # Stopped first, so that it cannot start another one meanwhile.
        process.send_signal(signal.SIGSTOP)
        children = _children(process.pid)
        for child in children:
            _kill(child)
        process.kill()
        process.wait()
        self._process = None
        # It would not start again while one of them still had its memory.
        _await(lambda: not any(map(_lives, children)))

    def halt(self) -> None:
        """Shut it down in order, without waiting for those who are connected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_START_SECONDS)
            self._process = None

    def stop(self) -> None:
        """Kill it and remove its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _set_up(self) -> None:
        _run_plainly("cp", "-a", _empty_cluster(self._programs), self._data, folder=self._folder)

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL did not start: {self.log}")
        try:
            psycopg.connect(_plain(self.url), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


@cache
def _empty_cluster(programs: Path) -> Path:
    """The data of a new server. To make it takes a second, and to copy it a tenth of that."""
    folder = _home(None, in_memory=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = ("-A", "trust", "-U", USER, "--no-sync", "--encoding=UTF8", "--locale=C")
    _run_plainly(programs / "initdb", "-D", folder / "data", *words, folder=folder)
    return folder / "data"


def _run_plainly(*words: str | Path, folder: Path) -> None:
    """Run a program as whoever the server runs as."""
    user = _plain_user()
    done = subprocess.run(
        words, cwd=folder, capture_output=True, check=False, user=user, group=user
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr.decode(errors='replace')}")


def _plain_user() -> str | None:
    """Who the server runs as, a group's name too; `None` for whoever runs this."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in _PLAIN_USERS if name in known)


def _home(folder: Path | None, *, in_memory: bool) -> Path:
    """A folder that belongs to whoever the server runs as."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    user = _plain_user()
    if folder is None or (user and not _open_to_all(folder)):
        above = _memory_with_room() if in_memory else None
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=above))
    if user:
        shutil.chown(folder, user, user)
    return folder


def _memory_with_room() -> Path | None:
    """Where a server has its data in memory, without what killed tests left there."""
    for left in _MEMORY.glob(f"{_PREFIX}*-*"):
        if not _lives(int(left.name.removeprefix(_PREFIX).partition("-")[0])):
            shutil.rmtree(left, ignore_errors=True)
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM else None


def _open_to_all(folder: Path) -> bool:
    """Whether anybody may go to it."""
    return all(each.stat().st_mode & 0o001 for each in folder.resolve().parents)


def _await(happened: Callable[[], bool]) -> None:
    """Raises TimeoutError where it takes too long."""
    deadline = time.monotonic() + _START_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def _children(parent: int) -> list[int]:
    """The processes that one has started; Linux only, as the tests that kill are."""
    try:
        words = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except FileNotFoundError:  # it has ended by itself
        return []
    return [int(word) for word in words]


def _lives(pid: int) -> bool:
    """A zombie does not: it has given back everything."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

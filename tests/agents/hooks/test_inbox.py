"""The folder in which hooks and their listener meet."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from midwatch_agents.hooks.inbox import (
    INBOX,
    MAX_INBOX,
    SOCKET,
    put_in_inbox,
    socket_path,
    state_folder,
    take_inbox,
)


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, "/users/ada/.local/state/midwatch"),
        ({"XDG_STATE_HOME": "/state"}, "/state/midwatch"),
        ({"XDG_STATE_HOME": "state"}, "/users/ada/.local/state/midwatch"),
        ({"XDG_STATE_HOME": "/state", "MIDWATCH_STATE": "/mine"}, "/mine"),
    ],
)
def test_the_environment_says_where_the_state_is(environ: dict[str, str], found: str) -> None:
    assert state_folder(environ, Path("/users/ada")) == Path(found)


def test_a_long_path_has_a_short_one_of_its_own(folder: Path) -> None:
    assert socket_path(folder) == folder / SOCKET
    deep, other = folder / ("x" * 100), folder / ("y" * 100)
    path = socket_path(deep, folder)
    assert path is not None
    assert path.parent.parent == folder
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert socket_path(deep, folder) == path != socket_path(other, folder)


def test_a_link_in_the_place_of_the_short_folder_is_no_place_for_a_socket(folder: Path) -> None:
    (folder / "theirs").mkdir()
    (folder / f"midwatch-{os.geteuid()}").symlink_to("theirs")
    assert socket_path(folder / ("x" * 100), folder) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [INBOX, f"{INBOX}.taken"])
def test_what_somebody_else_put_in_the_folder_is_not_taken(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"forged\n")
    os.chown(folder / name, 65534, 65534)
    with pytest.raises(PermissionError, match="another user's"):
        list(take_inbox(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    os.chown(folder, 65534, 65534)
    assert socket_path(folder) is None
    assert not put_in_inbox(folder, b"x\n")
    assert list(folder.iterdir()) == []


def test_an_inbox_that_is_a_link_is_not_followed_and_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "precious").write_text("kept")
    (folder / INBOX).symlink_to("precious")
    assert not put_in_inbox(folder, b"x\n")
    assert (folder / "precious").read_text() == "kept"
    with pytest.raises(OSError, match="symbolic link"):
        list(take_inbox(folder))
    (folder / INBOX).unlink()
    os.mkfifo(folder / INBOX)
    assert not put_in_inbox(folder, b"x\n")


def test_the_inbox_does_not_grow_beyond_its_bound(folder: Path) -> None:
    with (folder / INBOX).open("wb") as inbox:
        inbox.truncate(MAX_INBOX - 3)
    assert not put_in_inbox(folder, b"abc\n")
    assert put_in_inbox(folder, b"ab\n")
    assert (folder / INBOX).stat().st_size == MAX_INBOX


def test_a_locked_inbox_is_given_up(folder: Path) -> None:
    with (folder / INBOX).open("wb") as inbox:
        fcntl.flock(inbox, fcntl.LOCK_EX)
        assert not put_in_inbox(folder, b"x\n")
    assert put_in_inbox(folder, b"x\n")


def test_lines_that_were_taken_and_not_finished_come_again_first(folder: Path) -> None:
    put_in_inbox(folder, b"1\n")
    put_in_inbox(folder, b"2\n")
    taking = take_inbox(folder)
    assert next(taking) == b"1"
    taking.close()
    put_in_inbox(folder, b"3\n")
    assert list(take_inbox(folder)) == [b"1", b"2", b"3"]
    assert list(take_inbox(folder)) == []
    assert list(folder.iterdir()) == []


def test_no_line_is_lost_while_the_inbox_is_taken(folder: Path) -> None:
    put: list[bytes] = []

    def write() -> None:
        for number in range(300):
            if put_in_inbox(folder, b"%d\n" % number):
                put.append(b"%d" % number)

    writer = threading.Thread(target=write)
    writer.start()
    taken: list[bytes] = []
    while writer.is_alive():
        taken += take_inbox(folder)
    writer.join()
    taken += take_inbox(folder)
    assert taken == put
    assert put

"""What of the disk the arguments of bubblewrap show, and what of a repository's configuration."""

from pathlib import Path

import pytest

from midwatch_agents.sandbox_mounts import SandboxPaths, clean_git_config, mounts

CONFIG = """\
[core]
	repositoryformatversion = 1
	bare = false
	fsmonitor = touch x
	sshCommand = ssh -i ~/.ssh/id_x
[remote "origin"]
	url = https://ada:secret@example.org/x.git
	bare = secret
[extensions] ; no others
	objectFormat = sha256
[credential]
	helper = store --file=secret
[include]
	path = ../secret
[core "x"]
	eol = secret
"""


def test_a_repositorys_configuration_keeps_only_how_it_is_stored() -> None:
    assert clean_git_config(CONFIG).splitlines() == [
        "[core]",
        "\trepositoryformatversion = 1",
        "\tbare = false",
        "[extensions]",
        "\tobjectFormat = sha256",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[core] bare = secret:\n",
        '[core]\n\tbare = "secret"\n',
        "[core]\n\teol = a\\\nsecret:1\n",
        "[extensions]\n\tpartialClone = https://ada:secret@example.org\n",
    ],
)
def test_what_is_written_in_an_odd_way_is_left_out(text: str) -> None:
    assert "secret" not in clean_git_config(text)


class Disk:
    """Folders below one, and what of them a worker in `work/r1/a` is shown."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = self.make("work/r1/a")
        self.home = self.make("ada")

    def make(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def arguments(self, *read: str, path: str = "", hidden: tuple[Path, ...] = ()) -> list[str]:
        paths = SandboxPaths(folder=self.folder, read=read, hidden=hidden)
        return [*mounts(paths, {"HOME": str(self.home), "PATH": path})]

    def shown(self, *read: str, path: str = "", hidden: tuple[Path, ...] = ()) -> dict[str, str]:
        """The option for each place below the root, in order."""
        found: dict[str, str] = {}
        last = ""
        for word in self.arguments(*read, path=path, hidden=hidden):
            last = word if word.startswith("--") else last
            if word.startswith(f"{self.root}/") and last != "--remount-ro":
                found[word.removeprefix(f"{self.root}/")] = last
        return found


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


OWN = {"ada": "--tmpfs", "work/r1": "--tmpfs", "work/r1/a": "--bind"}


def test_nothing_is_shown_but_the_workspace_and_an_empty_home(disk: Disk) -> None:
    assert disk.shown() == OWN


def test_everything_begins_with_an_empty_root_and_ends_with_a_closed_one(disk: Disk) -> None:
    arguments = disk.arguments()
    assert arguments[:2] == ["--tmpfs", "/"]
    assert arguments[-2:] == ["--remount-ro", "/"]


def test_caches_are_shown_without_the_credentials_beside_them(disk: Disk) -> None:
    for name in ("ada/.cargo/registry", "ada/.m2/repository", "ada/.config/gh", "ada/.aws"):
        disk.make(name)
    (disk.home / ".cargo/credentials.toml").touch()
    cargo, maven = "ada/.cargo/registry", "ada/.m2/repository"
    assert disk.shown() == {**OWN, cargo: "--ro-bind-try", maven: "--ro-bind-try"}


@pytest.mark.parametrize("name", ["", ".", "bin", "/", "{home}", "{root}", "{home}/.local"])
def test_a_folder_of_programs_that_shows_too_much_is_not_shown(name: str, disk: Disk) -> None:
    disk.make("ada/.local")
    path = name.format(home=disk.home, root=disk.root)
    assert disk.shown(path=path) == OWN


def test_a_virtual_environment_in_the_path_is_shown_with_its_python(disk: Disk) -> None:
    python, venv = disk.make("pythons/3.12/bin"), disk.make("project/.venv/bin")
    (venv.parent / "pyvenv.cfg").write_text(f"home = {python}\nversion = 3.12\n")
    shown = disk.shown(path=str(venv))
    assert {"pythons/3.12", "project/.venv"} <= shown.keys()
    assert not {"project", "pythons"} & shown.keys()


def test_shims_in_the_path_are_shown_with_the_programs_that_they_call(disk: Disk) -> None:
    shims, calls = disk.make("pyenv/shims"), disk.make("pyenv/libexec").parent
    others = disk.make("tools/shims")
    assert disk.shown(path=f"{shims}:{others}").keys() - OWN.keys() == {calls.name, "tools/shims"}


def test_what_is_to_be_read_is_shown_and_the_journal_in_it_is_not(disk: Disk) -> None:
    home = disk.make("project/.midwatch")
    disk.make("ada/data")
    shown = disk.shown(str(disk.root / "project"), "~/data", hidden=(home,))
    assert [*shown] == ["ada", "project", "ada/data", "project/.midwatch", "work/r1", "work/r1/a"]
    assert shown["project/.midwatch"] == "--tmpfs"
    assert shown["ada/data"] == "--ro-bind-try"


def test_the_journals_folder_is_shown_to_whom_its_owner_shows_it(disk: Disk) -> None:
    home = disk.make("project/.midwatch")
    shown = disk.shown(str(home), hidden=(home,))
    assert shown["project/.midwatch"] == "--ro-bind-try"


def test_the_home_directory_stays_empty_even_where_it_is_named(disk: Disk) -> None:
    assert disk.shown(str(disk.home), str(disk.root)) == {**OWN, **disk.shown(str(disk.root))}
    assert disk.shown(str(disk.home))["ada"] == "--tmpfs"

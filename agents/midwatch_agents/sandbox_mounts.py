"""What a worker's commands can see of the disk inside the sandbox: an allow list."""

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = ("/usr", "/opt", "/nix/store", "/gnu/store")
_LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into `/usr` on most systems, folders on the others."""
_ETC = (
    *("alternatives", "ca-certificates*", "crypto-policies", "debian_version", "fonts", "gai.conf"),
    *("group", "host.conf", "hostname", "hosts", "java*", "ld.so.*", "locale*", "localtime"),
    *("magic*", "maven/logging", "maven/m2.conf", "mime.types", "nsswitch.conf", "os-release"),
    *("passwd", "perl", "php*", "protocols"),
    *("R", "python3*", "resolv.conf", "services", "shells", "terminfo", "timezone", "xml"),
    *("ssl/certs", "ssl/*.cnf", "ssl/*.pem", "pki/tls/certs", "pki/tls/*.cnf", "pki/ca-trust"),
)
"""Files that programs look up. Everything else is left out: passwords, host keys, proxies, and
package indexes with passwords in their URLs, which no file permission would protect from root.
"""
_HOME = (
    *(".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", "go/bin", "go/pkg/mod"),
    *(".pyenv", ".local/bin", ".local/lib", ".local/share/uv/python", ".local/share/uv/tools"),
    *(".local/share/pipx/venvs", ".local/share/mise/installs", ".local/share/mise/shims"),
    *(".nvm/versions", ".npm/_cacache", ".volta/bin", ".volta/tools", ".bun/bin", ".deno/bin"),
    *(".cache/ms-playwright", ".m2/repository", ".m2/wrapper", ".sdkman/candidates"),
    *(".rbenv", ".gem/ruby", ".nuget/packages", ".dotnet", ".asdf/installs", ".asdf/shims"),
)
"""Languages and their caches in the home directory, limited to folders without credentials. Caches
that are useless without write access are left out, such as uv's.
"""
_PREFIXES = ("pyvenv.cfg", "conda-meta", "Cellar")
"""Files next to the `bin` of an environment that must be shown as a whole."""
_GIT = ("HEAD", "config.worktree", "info", "objects", "packed-refs", "refs", "reftable", "shallow")
_GIT_SECTION = re.compile(r"\s*\[\s*(\w+)\s*\]\s*(?:[#;].*)?")
_GIT_VALUE = re.compile(r"\s*(\w+)\s*(?:=\s*[\w./-]*)?\s*")
_GIT_KEYS = {
    "core": (
        *("autocrlf", "bare", "eol", "filemode", "ignorecase", "precomposeunicode"),
        *("repositoryformatversion", "sparsecheckout", "sparsecheckoutcone", "symlinks"),
    ),
    "extensions": (
        *("compatobjectformat", "objectformat", "partialclone", "refstorage", "worktreeconfig"),
    ),
}
_GIT_CONFIG = "midwatch-config"
"""The cleaned configuration of a repository, stored next to the worktree's own git files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPaths:
    """The folders that matter to a sandbox, besides the system's own."""

    folder: Path
    """The workspace: the only folder where written files are kept."""
    git_dir: Path | None = None
    """The worktree's git directory as created, never as named by the workspace itself."""
    common_dir: Path | None = None
    """The git directory of the repository that the worktree belongs to."""
    read: tuple[str, ...] = ()
    """Further readable folders; `~` is the home directory."""
    hidden: tuple[Path, ...] = ()
    """Folders to hide inside readable ones: the journal, other workspaces."""


def mounts(paths: SandboxPaths, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return bubblewrap's arguments that show these folders and nothing else of the disk.

    They begin with an empty root, which hides everything mounted before them.
    """
    folder = paths.folder.resolve()
    home = Path(environ["HOME"]) if environ.get("HOME", "/") != "/" else None
    wanted = _readable_paths(paths, environ, home)
    private = {Path("/tmp"), Path("/var/tmp"), *([home] if home else [])}
    # Read-only, because a file written beside the workspace would be lost silently.
    above = {folder.parent} - private - wanted
    hidden = {each.resolve() for each in paths.hidden} - wanted
    empty = {*private, *above, *hidden}
    shown = {each for each in wanted if not _is_visible(each, wanted, empty)}
    needed = {each for each in empty if each not in hidden or _is_below(each, shown)}
    found = ["--tmpfs", "/", "--dev", "/dev", "--proc", "/proc", "--dir", "/run"]
    found += _linked_folders()
    found += ["--remount-ro", "/proc"]  # root could change settings of the whole machine there
    for each in sorted(shown | needed, key=lambda each: (len(each.parts), each)):
        if each in needed:
            found += ["--tmpfs", str(each)]
        elif not each.is_relative_to(folder):
            found += ["--ro-bind-try", str(each), str(each)]
    found += ["--bind", str(folder), str(folder), *_git(paths, folder)]
    for each in (*above, "/"):
        found += ["--remount-ro", str(each)]
    return tuple(found)


def _readable_paths(
    paths: SandboxPaths, environ: Mapping[str, str], home: Path | None
) -> set[Path]:
    """Return the existing folders and files that should be readable."""
    wanted = {*map(Path, _SYSTEM), *_etc()}
    wanted |= {each for each in _program_folders(environ) if _is_narrow(each, home)}
    wanted |= {Path(each) for each in paths.read if not each.startswith("~")}
    if home is not None:
        wanted |= {home / each for each in _HOME}
        wanted |= {home / each[2:] for each in paths.read if each.startswith("~/")}
    wanted |= {each.resolve() for each in wanted}
    there = {each for each in wanted if each.exists() and each != Path("/")}
    return {each for each in there if not _is_below(each, {*map(Path, _LINKED)})}


def _is_visible(place: Path, shown: Collection[Path], empty: Collection[Path]) -> bool:
    """Whether a place is already visible inside another, with nothing emptied in between."""
    if place in empty:
        return False
    nearest = next((each for each in place.parents if each in shown or each in empty), None)
    return nearest in shown and nearest not in empty


def _is_below(place: Path, shown: Collection[Path]) -> bool:
    return any(each in shown for each in (place, *place.parents))


def _program_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders on `PATH`, and the Python that runs Midwatch."""
    for text in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        yield Path(text)
    for text in environ.get("PATH", "").split(os.pathsep):
        place = Path(text)
        if not place.is_absolute():
            continue
        yield place
        shims = place.name == "shims" and (place.parent / "libexec").exists()  # pyenv, rbenv
        if shims or any((place.parent / mark).exists() for mark in _PREFIXES):
            yield place.parent
            yield from _base_of(place.parent / "pyvenv.cfg")


def program_files(command: Iterable[str]) -> Iterator[str]:
    """Yield the files that a command's links lead to, with all npm packages next to them.

    Its folder on `PATH` is visible already, but installers only put links into it.
    """
    for program in filter(None, map(shutil.which, command)):
        file = Path(program).resolve()
        packages = [each for each in file.parents if each.name == "node_modules"]
        yield str(packages[-1] if packages else file)


def _base_of(config: Path) -> Iterator[Path]:
    """Yield the Python installation that a virtual environment was created from."""
    if config.is_file():
        for line in config.read_text("utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and Path(value.strip()).name == "bin":
                yield Path(value.strip()).parent


def _is_narrow(place: Path, home: Path | None) -> bool:
    """Whether a folder of programs can be shown without exposing personal files."""
    if home is None:
        return place != Path("/")
    return not home.is_relative_to(place) and place != home / ".local"


def _etc() -> Iterator[Path]:
    for pattern in _ETC:
        yield from Path("/etc").glob(pattern)


def _linked_folders() -> Iterator[str]:
    for each in map(Path, _LINKED):
        if each.is_symlink():
            yield from ("--symlink", str(each.readlink()), str(each))
        elif each.is_dir():
            yield from ("--ro-bind", str(each), str(each))


# -- git: what `log`, `status`, `diff` and `blame` read ------------------------------------------


def _git(paths: SandboxPaths, folder: Path) -> Iterator[str]:
    """Yield mounts that show the worktree's repository read-only, without credentials or other
    worktrees.

    The workspace's `.git` becomes a mount point, which nothing inside can replace or remove.
    """
    common, own, link = paths.common_dir, paths.git_dir, folder / ".git"
    if common is None or own is None:
        return
    if link.is_file() and not link.is_symlink():
        yield from ("--ro-bind", str(link), str(link))
    yield from ("--tmpfs", str(common))
    shown = [*(common / name for name in _GIT), *_alternates(common / "objects"), own]
    for each in shown:
        yield from ("--ro-bind-try", str(each), str(each))
    for name, at in (("config", common), ("config.worktree", common), ("config.worktree", own)):
        if (config := at / name).is_file():
            yield from ("--ro-bind", str(_clean_config(config, own)), str(config))
    yield from ("--remount-ro", str(common))


def _clean_config(config: Path, own: Path) -> Path:
    """Write a copy of git's configuration that only says how the repository is stored."""
    text = clean_git_config(config.read_text("utf-8", errors="replace"))
    file = own / (_GIT_CONFIG if config.name == "config" else f"{_GIT_CONFIG}.worktree")
    if not file.is_file() or file.read_text("utf-8") != text:
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(text, "utf-8")
        part.replace(file)
    return file


def clean_git_config(text: str) -> str:
    """Return the lines of git's configuration that say how a repository is stored. Pure.

    Everything else is left out, such as the password in the URL of a remote.
    """
    kept: list[str] = []
    known: tuple[str, ...] = ()
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            section = _GIT_SECTION.fullmatch(line)
            name = section[1].lower() if section else ""
            known = _GIT_KEYS.get(name, ())
            kept += [f"[{name}]"] if known else []
        elif (value := _GIT_VALUE.fullmatch(line)) and value[1].lower() in known:
            kept.append(line)
    return "".join(f"{line}\n" for line in kept)


def _alternates(objects: Path) -> Iterator[Path]:
    """Yield the object folders of other repositories that this one borrows from."""
    listed = objects / "info" / "alternates"
    if listed.is_file():
        for line in listed.read_text("utf-8", errors="replace").splitlines():
            if line and not line.startswith("#"):
                yield (objects / line).resolve()

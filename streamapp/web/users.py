"""Users: a file with names, roles and argon2 hashes; limits of failed sign-ins; sessions."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from collections import OrderedDict, deque
from pathlib import Path
from typing import Final, Literal, NamedTuple

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from streamapp.errors import StreamappError, UsageError
from streamapp.people import pauses
from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web.store import Store

NAME: Final = re.compile(r"[\w.@+-]{1,100}")
RESERVED: Final = frozenset((AGREEMENT, pauses.USER))
"""Users of audit entries that no person has written; a person of such a name could not be told from them."""
Role = Literal["annotator", "reviewer", "operator"]
ANNOTATOR: Final[Role] = "annotator"  # answers requests
REVIEWER: Final[Role] = "reviewer"  # answers requests, and decides where annotators disagree
OPERATOR: Final[Role] = "operator"  # sees and does everything
ROLES: Final[tuple[Role, ...]] = (ANNOTATOR, REVIEWER, OPERATOR)
PASSWORD_MIN: Final = 10
PASSWORD_MAX: Final = 1024
SESSION_MS: Final = 12 * 3600 * 1000
ATTEMPTS: Final = 5
ATTEMPTS_OF_ALL: Final = 50
WITHIN_MS: Final = 60_000
SESSIONS_MAX: Final = 20
"""Sessions of a user at most; a further one ends the oldest."""
_REMEMBERED: Final = 10_000  # names and addresses with failures, at most
_HASHER: Final = PasswordHasher()
_NOBODY: Final = _HASHER.hash(secrets.token_hex(16))  # checked for unknown names: takes as long


class User(NamedTuple):
    """The entry of a user in the file."""

    digest: str
    role: Role


class Users:
    """The file, read again when it has changed; each line is NAME:HASH or NAME:ROLE:HASH."""

    def __init__(self, path: Path) -> None:
        """Read the file once; UsageError if it is missing, malformed or empty."""
        self._path = path
        self._known: tuple[tuple[int, int, int], dict[str, User]] = ((0, 0, 0), {})
        if not self._read():
            message = (
                f"--users {path} must have a user; make one with 'grove web --users {path} --add-user NAME'"
            )
            raise UsageError(message)

    def _read(self) -> dict[str, User]:
        try:
            status = self._path.stat()
        except OSError:
            return read_users(self._path)
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._known[0] != version:
            self._known = (version, read_users(self._path))
        return self._known[1]

    def check(self, name: str, password: str) -> bool:
        """Whether this is the password of a user; takes about 50 ms of CPU."""
        user = self._read().get(name)
        try:
            right = _HASHER.verify(user.digest if user else _NOBODY, password[:PASSWORD_MAX])
        except (VerificationError, InvalidHashError):
            return False
        return right and user is not None

    def proof(self, name: str) -> str:
        """Return a text that changes with the user's password; "": the user is not in the file."""
        user = self._read().get(name)
        return "" if user is None else hashlib.sha256(user.digest.encode()).hexdigest()

    def role(self, name: str) -> Role | None:
        """Return the role of a user; None: they are not, or no longer, in the file."""
        user = self._read().get(name)
        return None if user is None else user.role


def read_users(path: Path) -> dict[str, User]:
    """Return the users by name; a missing file has no users."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        message = f"--users {path} cannot be read: {error}"
        raise StreamappError(message) from None
    users = {}
    for number, line in enumerate(lines, 1):
        name, *role, digest = line.split(":")
        if not line.strip():
            continue
        is_role = role == [] or (len(role) == 1 and role[0] in ROLES)
        if not is_role or not NAME.fullmatch(name) or not digest.startswith("$argon2"):
            message = (
                f"--users {path}:{number} must be NAME:HASH or NAME:ROLE:HASH with a role of "
                f"{', '.join(ROLES)}; make lines with "
                "'grove web --add-user NAME --role ROLE'"
            )
            raise StreamappError(message)
        users[name] = User(
            digest, next((name_of_role for name_of_role in ROLES if [name_of_role] == role), ANNOTATOR)
        )
    return users


def add_user(path: Path, name: str, password: str, role: Role = ANNOTATOR) -> None:
    """Add a user to the file, or change their password and role; the file is replaced as a whole."""
    if not NAME.fullmatch(name):
        message = f"--add-user {name!r} must have 1 to 100 letters, digits, '.', '_', '@', '+' or '-'"
        raise UsageError(message)
    if name in RESERVED:
        message = f"--add-user {name} must not be the user of entries of the application; choose another name"
        raise UsageError(message)
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        message = f"the password must have {PASSWORD_MIN} to {PASSWORD_MAX:,} characters"
        raise UsageError(message)
    users = read_users(path) | {name: User(_HASHER.hash(password), role)}
    text = "".join(f"{user_name}:{user.role}:{user.digest}\n" for user_name, user in users.items())
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:  # mkstemp: only the file's owner may read it
        file.write(text)
    Path(written).replace(path)


class SignInLimit:
    """Limits wrong passwords per minute for each name, and for all names of an address together."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[int]] = OrderedDict()

    def admits(self, name: str, address: str, now: int) -> bool:
        """Whether another attempt may be made; it counts as failed until `succeeded` takes it back."""
        places = ((f"name {name}", ATTEMPTS), (f"address {address}", ATTEMPTS_OF_ALL))
        attempts = [(self._of(place, now), limit) for place, limit in places]
        if any(len(times) >= limit for times, limit in attempts):
            return False
        for times, _ in attempts:
            times.append(now)
        return True

    def succeeded(self, name: str, address: str) -> None:
        """Take back the attempt, because the password was right."""
        self._failures.pop(f"name {name}", None)
        if times := self._failures.get(f"address {address}"):
            times.pop()

    def _of(self, place: str, now: int) -> deque[int]:
        times = self._failures.setdefault(place, deque())
        self._failures.move_to_end(place)
        while times and times[0] <= now - WITHIN_MS:
            times.popleft()
        while len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)
        return times


class Sessions:
    """The sessions, each with a random token in a cookie; the store keeps only hashes of the tokens.

    Every page checks its session once a second in the thread that serves all pages, which must not wait
    for the store. Therefore the sessions are also kept in memory.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        with store.reading() as db:
            rows = db.execute("SELECT digest, annotator, until_ms, proof FROM session").fetchall()
        self._known = {
            bytes(digest): (str(who), int(until), str(proof)) for digest, who, until, proof in rows
        }

    def begin(self, annotator: str, now: int, proof: str = "") -> str:
        """Return the token of a new session. The session ends when `Users.proof` is no longer `proof`."""
        token = secrets.token_urlsafe(32)
        digest, until = _digest(token), now + SESSION_MS
        with self._store.transaction() as db:
            gone = db.execute(
                "DELETE FROM session WHERE until_ms <= ? OR digest IN (SELECT digest FROM session "
                "WHERE annotator = ? ORDER BY until_ms DESC LIMIT -1 OFFSET ?) RETURNING digest",
                (now, annotator, SESSIONS_MAX - 1),
            ).fetchall()
            db.execute("INSERT INTO session VALUES (?, ?, ?, ?)", (digest, annotator, until, proof))
        for (old,) in gone:
            self._known.pop(bytes(old), None)
        self._known[digest] = annotator, until, proof
        return token

    def annotator(self, token: str, now: int) -> str | None:
        """Return the annotator of a session; None: there is no such session."""
        annotator, until, _ = self._known.get(_digest(token), (None, 0, ""))
        return annotator if until > now else None

    def proof(self, token: str) -> str:
        """Return the proof with which the session of a token began."""
        return self._known.get(_digest(token), ("", 0, ""))[2]

    def end(self, token: str) -> None:
        """Sign out."""
        digest = _digest(token)
        self._known.pop(digest, None)
        with self._store.transaction() as db:
            db.execute("DELETE FROM session WHERE digest = ?", (digest,))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()

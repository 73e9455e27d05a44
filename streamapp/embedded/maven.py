"""Maven mirrors and proxies from the user's Maven and jgo settings, else jgo's default."""

import os
import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from streamapp.errors import DownloadError


@dataclass(frozen=True)
class Repository:
    """One remote repository: root URL without a closing slash, credentials if a server entry has them."""

    url: str
    auth: tuple[str, str] | None = None


@dataclass
class MavenSettings:
    """The settings in `settings.xml` that concern access to the central repository."""

    mirror: Repository | None = None
    local: Path | None = None
    proxies: dict[str, str] = field(default_factory=dict)
    no_proxy: list[str] = field(default_factory=list)


def settings_files() -> list[Path]:
    """Maven's places for `settings.xml`: first the user's, then the installation's."""
    homes = [os.environ.get(name) for name in ("MAVEN_HOME", "M2_HOME")]
    installed = [Path(home) / "conf" / "settings.xml" for home in homes if home]
    return [Path.home() / ".m2" / "settings.xml", *installed]


def read_maven_settings(files: list[Path] | None = None) -> MavenSettings:
    """Merge the settings files; the earlier file wins."""
    merged = MavenSettings()
    for file in settings_files() if files is None else files:
        if not file.is_file():
            continue
        settings = _parse(file)
        merged.mirror = merged.mirror or settings.mirror
        merged.local = merged.local or settings.local
        if not merged.proxies:
            merged.proxies, merged.no_proxy = settings.proxies, settings.no_proxy
    return merged


def sources(settings: MavenSettings) -> list[Repository]:
    """Remote repositories in the order of use: the mirror alone, or jgo's repositories and its default."""
    if settings.mirror:
        return [settings.mirror]
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    configured: dict[str, str] = {**GlobalSettings.load().repositories, **MavenContext().remote_repos}
    return [Repository(url.rstrip("/")) for url in configured.values()]


def local_repositories(settings: MavenSettings) -> list[Path]:
    """Local repositories whose jars are used if they match the lock file."""
    from jgo.maven import MavenContext

    return [path for path in (settings.local, MavenContext().repo_cache) if path]


def proxies_for(url: str, settings: MavenSettings) -> dict[str, str]:
    """Proxies of `settings.xml` for this URL; empty if the environment's variables decide."""
    host = urlsplit(url).hostname or ""
    if any(fnmatch(host, pattern) for pattern in settings.no_proxy):
        return {}
    return settings.proxies


def _parse(file: Path) -> MavenSettings:
    try:
        root = ElementTree.fromstring(file.read_text(encoding="utf-8"))  # noqa: S314 - the user's own file
    except (ElementTree.ParseError, UnicodeDecodeError) as error:
        message = f"{file} is not a Maven settings file ({error}); repair it or move it away"
        raise DownloadError(message) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    servers = {
        _text(server, "id"): (_text(server, "username"), _text(server, "password"))
        for server in root.iterfind("servers/server")
    }
    settings = MavenSettings()
    local = _text(root, "localRepository")
    settings.local = Path(local).expanduser() if local else None
    for mirror in root.iterfind("mirrors/mirror"):
        if settings.mirror is None and mirrors_central(_text(mirror, "mirrorOf")):
            auth = servers.get(_text(mirror, "id"))
            settings.mirror = Repository(_text(mirror, "url").rstrip("/"), auth if auth and auth[0] else None)
    for proxy in root.iterfind("proxies/proxy"):
        if _text(proxy, "active") != "false" and not settings.proxies:
            _add_proxy(settings, proxy)
    return settings


def mirrors_central(mirror_of: str) -> bool:
    """Whether a mirror's `mirrorOf` pattern covers the central repository (`!central` excludes it)."""
    patterns = [pattern.strip() for pattern in mirror_of.split(",")]
    return "!central" not in patterns and any(p in ("central", "*", "external:*") for p in patterns)


def _add_proxy(settings: MavenSettings, proxy: ElementTree.Element) -> None:
    user, password = _text(proxy, "username"), _text(proxy, "password")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    host = f"{_text(proxy, 'host')}:{_text(proxy, 'port') or '8080'}"
    url = f"{_text(proxy, 'protocol') or 'http'}://{login}{host}"
    settings.proxies = {"http": url, "https": url}
    settings.no_proxy = [p.strip() for p in re.split(r"[|,]", _text(proxy, "nonProxyHosts")) if p.strip()]


def _text(element: ElementTree.Element, path: str) -> str:
    """Text of a child with Maven's `${env.NAME}` and `${user.home}` filled in; empty when absent."""
    raw = (element.findtext(path) or "").strip()
    raw = raw.replace("${user.home}", str(Path.home()))
    return re.sub(r"\$\{env\.(\w+)\}", lambda match: os.environ.get(match[1], ""), raw)

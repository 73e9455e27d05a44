"""Kubernetes' API as a pod reads it before it ends: does its StatefulSet still need it?

A pod that restarts keeps its membership of the group; a pod that is scaled away should leave it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamapp.errors import StreamappError

SECRETS: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which a pod finds `token`, `ca.crt` and `namespace`."""
SECONDS: Final = 5.0
REMEDY: Final = (
    "give the service account the right to get it (k8s/chart does with drainOnScaleDown=true); this worker "
    "stays a member of its group until session.timeout.ms"
)


def is_scaled_away(
    pod: str, environment: Mapping[str, str] = os.environ, secrets: Path | None = None
) -> bool:
    """Return whether the StatefulSet of a pod is to have no pod of this number, or is deleted itself.

    Raise StreamappError if the API cannot be read.
    """
    name, _, number = pod.rpartition("-")
    if not name or not number.isdecimal():
        message = f"--on-scale-down: the name {pod} must be that of a pod of a StatefulSet, such as {pod}-0"
        raise StreamappError(message)
    stateful_set = _read(name, environment, secrets or SECRETS)
    if stateful_set is None or "deletionTimestamp" in stateful_set["metadata"]:
        return True
    spec = stateful_set["spec"]
    first = spec.get("ordinals", {}).get("start", 0)
    return not first <= int(number) < first + spec["replicas"]


def _read(name: str, environment: Mapping[str, str], secrets: Path) -> dict[str, Any] | None:
    """Return a StatefulSet of the pod's namespace, None if there is none of that name."""
    import requests

    try:
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
        namespace = (secrets / "namespace").read_text(encoding="utf-8").strip()
        token = (secrets / "token").read_text(encoding="utf-8").strip()
    except (KeyError, OSError) as error:
        message = f"--on-scale-down needs a pod with a token of its service account ({error}); {REMEDY}"
        raise StreamappError(message) from None
    host = f"[{host}]" if ":" in host else host
    url = f"https://{host}:{port}/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
    try:
        answer = requests.get(
            url,
            headers={"Authorization": f"Bearer {token}"},
            verify=str(secrets / "ca.crt"),
            timeout=SECONDS,
        )
    except (requests.RequestException, OSError) as error:
        message = f"StatefulSet {name} cannot be read from Kubernetes' API ({type(error).__name__}); {REMEDY}"
        raise StreamappError(message) from None
    if answer.status_code == requests.codes.not_found:
        return None
    if answer.status_code != requests.codes.ok:
        reason = f"{answer.status_code} {answer.reason}"
        message = f"StatefulSet {name} cannot be read from Kubernetes' API ({reason}); {REMEDY}"
        raise StreamappError(message)
    read: dict[str, Any] = answer.json()
    return read

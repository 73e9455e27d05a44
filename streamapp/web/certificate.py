"""Certificate: the TLS side of a server, from a certificate and its key."""

from __future__ import annotations

import ssl
from pathlib import Path

from streamapp.errors import UsageError


def server_tls(certificate: Path | None, private_key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context of a server, None without a certificate.

    UsageError if only one of the two is given, or if they cannot be used.
    """
    if (certificate is None) != (private_key is None):
        message = "--certificate and --private-key must be given together"
        raise UsageError(message)
    if certificate is None:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        tls.load_cert_chain(certificate, private_key)
    except OSError as error:
        message = (
            f"--certificate {certificate} with --private-key {private_key} cannot be "
            f"used: {error}; name a certificate and its key, both PEM"
        )
        raise UsageError(message) from None
    return tls

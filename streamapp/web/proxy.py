"""Trusted proxy: users that a proxy has signed in, by OpenID Connect for example, and names in a header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers

from streamapp.errors import UsageError
from streamapp.web.users import ANNOTATOR, NAME, OPERATOR, RESERVED, REVIEWER, Role


@dataclass(frozen=True, slots=True)
class Proxy:
    """A header with the user's name, and the addresses of proxies from which it is believed."""

    header: str
    networks: tuple[IPv4Network | IPv6Network, ...]
    operators: frozenset[str] = frozenset()
    reviewers: frozenset[str] = frozenset()

    @staticmethod
    def of(
        header: str, trusted: Sequence[str], operators: Sequence[str], reviewers: Sequence[str] = ()
    ) -> Proxy:
        """Read the options of the operator; UsageError if they are wrong."""
        if not trusted:
            message = (
                f"--proxy-header {header} needs --trusted-proxy ADDRESS: any client could "
                "send that header from another address"
            )
            raise UsageError(message)
        try:
            networks = tuple(ip_network(address) for address in trusted)
        except ValueError as error:
            message = f"--trusted-proxy must be an address, or a network such as 10.0.0.0/24: {error}"
            raise UsageError(message) from None
        if any(network.prefixlen == 0 for network in networks):
            message = "--trusted-proxy must not be every address: give the address of the proxy"
            raise UsageError(message)
        return Proxy(header, networks, frozenset(operators), frozenset(reviewers))

    def user(self, headers: Headers, address: str) -> tuple[str, Role] | None:
        """Return the user that the proxy names, with their role; None: no trusted proxy names a user.

        A header that occurs twice is not believed: the browser may have sent one of the two.
        """
        try:
            peer = ip_address(address)
        except ValueError:
            return None
        named = headers.getlist(self.header)
        if not any(peer in network for network in self.networks) or len(named) != 1:
            return None
        if not NAME.fullmatch(named[0]) or named[0] in RESERVED:
            return None
        if named[0] in self.operators:
            return named[0], OPERATOR
        return named[0], REVIEWER if named[0] in self.reviewers else ANNOTATOR

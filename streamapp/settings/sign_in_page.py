"""The section of `docs/settings.md` on sign-in by tokens, with the properties of each method."""

from typing import Final

from streamapp.settings.tables import table

BEFORE: Final = """
## Sign-in by tokens

With `security.protocol=SASL_SSL` (or `SASL_PLAINTEXT`) and `sasl.mechanism=OAUTHBEARER`, every client of a
process signs in with the token of one source. A thread renews it between 60 % and 75 % of its life; the
names of host and client determine the moment, so that workers do not all request at once. Lives are
reckoned by monotonic time from the request on: a wrong clock of the worker's machine does not matter. If
the endpoint does not answer, the token stays in use, the request is repeated, `/readyz` is red with the
reason, and `grove_token_expires_seconds` counts down. `sasl.oauthbearer.method` chooses the way to get
tokens:

"""

PROPERTIES: Final = (
    ("sasl.oauthbearer.method", "all", "`oidc`, `file`, `msk_iam`, or the name of a plug-in"),
    ("sasl.oauthbearer.extensions", "all", "`name=value` pairs, separated by commas, sent with the token"),
    (
        "sasl.oauthbearer.sub.claim.name",
        "all",
        "claim that holds the principal, as set at the broker (default `sub`); an error about a missing "
        "right names this principal",
    ),
    (
        "sasl.oauthbearer.token.endpoint.url",
        "`oidc`, `file`",
        "address of the token endpoint, or `file:///path` of a token that another process keeps fresh, such "
        "as a projected token of Kubernetes",
    ),
    ("sasl.oauthbearer.client.id", "`oidc`", "client of the client credentials grant"),
    (
        "sasl.oauthbearer.client.secret",
        "`oidc`",
        "its secret, best from a file: `GROVE_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET_FILE`",
    ),
    ("sasl.oauthbearer.scope", "`oidc`", "scope of the token; optional"),
    (
        "sasl.oauthbearer.header.urlencode",
        "`oidc`",
        "`true`: id and secret are encoded as RFC 6749 demands; default `false`",
    ),
    (
        "https.ca.location",
        "`oidc`",
        "file or folder of authorities (PEM) for the endpoint; default: those of the package certifi",
    ),
    (
        "sasl.oauthbearer.config",
        "`msk_iam`",
        "`region=NAME`; default: `AWS_REGION`. Credentials come from the default chain of AWS",
    ),
)

AFTER: Final = """
`msk_iam` needs the extra `streamgrove[msk-iam]`. A package adds a method by an entry point of the group
`streamgrove.tokens`: a class with the members of `Provider` in `topics/tokens/providers.py`.

If brokers set `connections.max.reauth.ms`, librdkafka's clients sign in again on their connections;
aiokafka's connections are closed by the broker when their token ends, and opened again. confluent-kafka
waits one second when it opens a client with a token.

A listener of Kafka 4.1.1 with `sasl.oauthbearer.jwks.endpoint.url` verifies signatures, issuer and audience
only if the broker sets `sasl.oauthbearer.jwt.validator.class` to
`org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator`; without it, it lets in forged tokens. A
listener of Kafka 4.4.0 verifies them by default.

`sasl.mechanism=GSSAPI` is refused: librdkafka is built without Kerberos in the packages of confluent-kafka,
and aiokafka needs the package gssapi.
"""


def sign_in_section() -> str:
    """Return the section, from its heading to its last line end."""
    rows = ((f"`{name}`", methods, meaning) for name, methods, meaning in PROPERTIES)
    return BEFORE + table(("property", "methods", "meaning"), rows) + AFTER

"""MSK IAM: tokens for Amazon MSK, signed on this machine with the credentials of AWS' default chain."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from topics.errors import TokenError
from topics.tokens.providers import METHOD
from topics.tokens.token import Token, read_token

CONFIG: Final = "sasl.oauthbearer.config"
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_REGION: Final = re.compile(r"region=([a-z0-9-]+)")


class MskIam:
    """Tokens that the signer of AWS makes; the extra `msk-iam` brings it."""

    required: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = (CONFIG,)

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties, which have passed `problems`."""
        self._region = _region(properties)

    @classmethod
    def problems(cls, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each wrong value, and for a signer that is not installed."""
        config = properties.get(CONFIG, "")
        if config and not _REGION.fullmatch(config.strip()):
            yield f"{CONFIG}={config} must name the region; write it like region=eu-central-1"
        elif not _region(properties):
            yield f"{CONFIG} must be region=NAME with {METHOD}=msk_iam; set it, or the variable {REGIONS[0]}"
        if find_spec("aws_msk_iam_sasl_signer") is None:
            yield (
                f"{METHOD}=msk_iam needs the package aws-msk-iam-sasl-signer-python; "
                "install streamgrove[msk-iam]"
            )

    @property
    def place(self) -> str:
        """The region."""
        return f"{METHOD}=msk_iam, region {self._region}"

    def fetch(self) -> Token:
        """Sign a token. Raises TokenError if AWS has no credentials for this process."""
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.credentials import CredentialProvider
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
        from botocore.session import Session

        class DefaultChain(CredentialProvider):  # type: ignore[misc] # botocore has no types
            """The default chain; the signer itself fails with an AttributeError where it finds nothing."""

            def load(self) -> Any:
                if (credentials := Session().get_credentials()) is None:
                    raise NoCredentialsError
                return credentials

        sign = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider
        try:
            value, ends_ms = sign(self._region, DefaultChain())
        except (BotoCoreError, ClientError, ValueError, OSError) as error:
            message = f"{self.place} has no token: {error}; see to the credentials of AWS"
            raise TokenError(message) from None
        # The signer computes the end with the clock of this machine.
        return read_token(value, self.place, ends_ms / 1000 - time.time())


def _region(properties: Mapping[str, str]) -> str:
    match = _REGION.fullmatch(properties.get(CONFIG, "").strip())
    return match[1] if match else next((os.environ[name] for name in REGIONS if os.environ.get(name)), "")

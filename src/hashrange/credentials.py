"""The parts of a request's authorization: of the Authorization header, or of a presigned request's query.

Source: AWS General Reference, "Create a signed AWS API request":

    Authorization: algorithm Credential=access-key-ID/credential-scope, SignedHeaders=…, Signature=signature
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hashrange.errors import IncompleteSignatureException, MissingAuthenticationTokenException

SOURCE: Final = b":source"
"""Among the headers of a request, the address that has sent it. No client can send a header with this name,
because a name has no colon."""
MISSING_TOKEN: Final = "Request is missing Authentication Token"
_SEPARATORS: Final = re.compile(r"[ ,\t]+")
_HEADER_PARAMETERS: Final = ("Credential", "Signature", "SignedHeaders")
_QUERY_PARAMETERS: Final = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)


def header_parameters(authorization: bytes, headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """The parameters of an Authorization header; "Algorithm" is its scheme.

    Raises MissingAuthenticationTokenException for a scheme that is not AWS4, and
    IncompleteSignatureException for missing parts, all of them in one message.
    """
    # Only ASCII's white space separates: a no-break space is a part of the text.
    text = authorization.strip().decode("latin-1")
    if not text.startswith("AWS4-"):
        raise MissingAuthenticationTokenException(MISSING_TOKEN)
    algorithm, _, pairs = text.partition(" ")
    parameters = {"Algorithm": algorithm}
    for pair in filter(None, _SEPARATORS.split(pairs)):
        name, equals, value = pair.partition("=")
        if not equals:
            raise IncompleteSignatureException(
                f"'{pair}' not a valid key=value pair (missing equal-sign) in Authorization header: '{text}'."
            )
        if name in parameters:
            # Which of the two is meant must not depend on who reads them. [assumed]
            raise IncompleteSignatureException(
                f"Authorization header must have '{name}' parameter only once. Authorization={text}"
            )
        parameters[name] = value
    missing = [
        f"Authorization header requires '{name}' parameter."
        for name in _HEADER_PARAMETERS
        if not parameters.get(name)
    ]
    if b"x-amz-date" not in headers and b"date" not in headers:
        missing.append("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
    if missing:
        raise IncompleteSignatureException(f"{' '.join(missing)} Authorization={text}")
    return parameters


def check_query_parameters(parameters: Mapping[str, str]) -> None:
    """Check that the query of a presigned request is complete. Raises IncompleteSignatureException."""
    missing = [
        f"AWS query-string parameters must include '{name}'."
        for name in _QUERY_PARAMETERS
        if not parameters.get(name)
    ]
    if missing:
        raise IncompleteSignatureException(f"{' '.join(missing)} Re-examine the query-string parameters.")

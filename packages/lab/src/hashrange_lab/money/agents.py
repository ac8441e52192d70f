"""Who sends a request, in a few words: the app id of its User-Agent, else the SDK's name.

SDKs append the app id that a program sets (`AWS_SDK_UA_APP_ID`, `sdk_ua_app_id`) as `app/NAME`. A User-Agent
without it begins with the SDK: `Boto3/1.40.1 md/Botocore#1.40.1 …`.
Source: SDKs and Tools Reference Guide, "Application ID".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

UNKNOWN: Final = "unknown"
"""The tag of a request without a User-Agent."""
TAG_CHARACTERS_MAX: Final = 60
_APP: Final = re.compile(r"(?:^|\s)app/([^\s;()]+)")
_PRODUCT: Final = re.compile(r"[^\s/;()]+")


@lru_cache(maxsize=512)
def tag(agent: str) -> str:
    """The tag of a User-Agent."""
    named = _APP.search(agent)
    if named is not None:
        return named[1][:TAG_CHARACTERS_MAX]
    product = _PRODUCT.search(agent)
    return product[0][:TAG_CHARACTERS_MAX] if product is not None else UNKNOWN

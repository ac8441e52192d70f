"""A client whose answers are awaited, as aiobotocore's are, before one of boto3."""

from __future__ import annotations

from typing import Any, cast

from hashrange_patterns.flows import AsyncClient
from patterns.faults import Intercepted


class Asynchronous(Intercepted):
    """Answers with coroutines."""

    def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
        async def answer() -> Any:
            return Intercepted.perform(self, operation, parameters)

        return answer()


def asynchronous(client: Any) -> AsyncClient:
    """`client`, awaited."""
    return cast(AsyncClient, Asynchronous(client))

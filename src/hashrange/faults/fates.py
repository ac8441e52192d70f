"""What a fault does to a request."""

from __future__ import annotations

from dataclasses import dataclass

from hashrange.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one request.

    `error` replaces the answer. If the request is `performed`, it runs first, and the error is delivered when
    its writes are durable. `left` are the members of a batch that stay unprocessed. The outcome is delayed by
    `delay_seconds`; before it, a virtual clock is advanced by `virtual_seconds`.
    """

    error: ServiceError | None = None
    performed: bool = False
    left: frozenset[int] = frozenset()
    delay_seconds: float = 0.0
    virtual_seconds: float = 0.0

    def joined(self, other: Fate) -> Fate:
        """Both fates: the first error counts, the delays add up."""
        first = self if self.error is not None else other
        return Fate(
            first.error,
            first.performed,
            self.left or other.left,
            self.delay_seconds + other.delay_seconds,
            self.virtual_seconds + other.virtual_seconds,
        )

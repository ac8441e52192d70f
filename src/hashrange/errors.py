"""Every error the API answers with, one class per AWS error code.

    ServiceError                                  never raised itself
    ├── ValidationException                       a request that breaks a rule
    │   ├── TopLevelError                         clients see a ValidationException
    │   └── RequestViolation                      clients see a ValidationException
    ├── SerializationException                    JSON or a member of the wrong type
    ├── UnknownOperationException
    ├── MissingAuthenticationTokenException  IncompleteSignatureException
    ├── UnrecognizedClientException          InvalidSignatureException
    ├── ExpiredTokenException
    ├── AccessDeniedException
    ├── ConditionalCheckFailedException           members: Item
    ├── TransactionCanceledException              members: CancellationReasons
    ├── TransactionConflictException         TransactionInProgressException
    ├── IdempotentParameterMismatchException
    ├── ResourceNotFoundException            ResourceInUseException
    ├── TableNotFoundException               LimitExceededException
    ├── DuplicateItemException
    ├── ItemCollectionSizeLimitExceededException
    ├── ProvisionedThroughputExceededException
    ├── RequestLimitExceeded                 ThrottlingException
    ├── ExpiredIteratorException             TrimmedDataAccessException
    ├── ExportConflictException              ExportNotFoundException
    ├── ImportConflictException              ImportNotFoundException
    ├── TableAlreadyExistsException          TableInUseException
    ├── ContinuousBackupsUnavailableException  PointInTimeRecoveryUnavailableException
    ├── InvalidExportTimeException           InvalidRestoreTimeException
    ├── BackupNotFoundException              BackupInUseException
    ├── GlobalTableNotFoundException         PolicyNotFoundException
    ├── InternalServerError                       500
    ├── ServiceUnavailable                        503
    └── AnswerLost                                no answer: a fault closed the connection

The module that knows a rule raises the `ServiceError`; `protocol` turns it into bytes. Texts that more than
one module needs are constants at the end of this file.
Source of the envelope: DynamoDB API reference, "Programming with DynamoDB: error handling".
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from hashrange.limits import MESSAGE_CHARS_MAX

__all__ = ["ServiceError"]

_DYNAMODB: Final = "com.amazonaws.dynamodb.v20120810#"
_SERVICE: Final = "com.amazon.coral.service#"
_VALIDATE: Final = "com.amazon.coral.validate#"


def shown(text: str, chars_max: int) -> str:
    """`text` as errors show it: a long text is cut off, and an ellipsis added [assumed]."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}…"


class ServiceError(Exception):
    """An error answer; the subclasses in this module have the names of the API's errors, and are as public.

    `message` is the text the client sees (None sends no text, as DynamoDB does for some codes);
    `members` are further members of the error's shape, in wire form. `units` are the write units that a
    refused write consumed, and `bill` is everything that a refused request consumed (`tables.items.capacity`;
    None: nothing).
    """

    units: int = 0
    bill: Any = None
    status: ClassVar[int] = 400
    namespace: ClassVar[str] = _DYNAMODB
    message_member: ClassVar[str] = "message"

    def __init__(self, message: str | None = None, **members: Any) -> None:
        # Many texts show a part of the request, which may be megabytes long.
        if message is not None and len(message) > MESSAGE_CHARS_MAX:
            message = shown(message, MESSAGE_CHARS_MAX)
        super().__init__(message)
        self.message = message
        self.members = members

    @property
    def code(self) -> str:
        """The AWS error code, for example ``ResourceNotFoundException``."""
        return type(self).__name__

    def wire(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        body: dict[str, Any] = {"__type": self.namespace + self.code}
        if self.message is not None:
            body[self.message_member] = self.message
        body.update(self.members)
        return body


class ValidationException(ServiceError):
    namespace = _VALIDATE


class TopLevelError(ValidationException):
    """An error that a transaction answers with, and not with a cancellation that has it as a reason."""

    @property
    def code(self) -> str:
        return ValidationException.__name__


class RequestViolation(ValidationException):
    """A rule that the request by itself breaks; operations word this error differently.

    `newer` is the text for operations that the service's newer layer reads, if it differs from the message.
    `shapes.layers` says which operations these are, and which of them begin the text with a count.
    """

    def __init__(self, message: str, newer: str | None = None) -> None:
        super().__init__(message)
        self.newer = message if newer is None else newer

    @property
    def code(self) -> str:
        return ValidationException.__name__

    def counted(self) -> ValidationException:
        """The error with a count, as PutItem, UpdateItem and DeleteItem report it, and sometimes Query."""
        return ValidationException(f"1 validation error detected: {self.newer}")


class SerializationException(ServiceError):
    namespace = _SERVICE
    message_member = "Message"


class UnknownOperationException(ServiceError):
    namespace = _SERVICE


class MissingAuthenticationTokenException(ServiceError):
    namespace = _SERVICE


class IncompleteSignatureException(ServiceError):
    namespace = _SERVICE


class UnrecognizedClientException(ServiceError):
    namespace = _SERVICE


class InvalidSignatureException(ServiceError):
    namespace = _SERVICE


class ExpiredTokenException(ServiceError):
    namespace = _SERVICE


class AccessDeniedException(ServiceError):
    namespace = _SERVICE
    message_member = "Message"


class ConditionalCheckFailedException(ServiceError):
    pass


class TransactionCanceledException(ServiceError):
    message_member = "Message"

    @classmethod
    def of(cls, reasons: list[dict[str, Any]]) -> Self:
        """The error with these CancellationReasons, one for each member of the transaction, in order."""
        codes = ", ".join(reason["Code"] for reason in reasons)
        return cls(
            f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
            CancellationReasons=reasons,
        )


class TransactionConflictException(ServiceError):
    pass


class TransactionInProgressException(ServiceError):
    message_member = "Message"


class IdempotentParameterMismatchException(ServiceError):
    message_member = "Message"


class ResourceNotFoundException(ServiceError):
    pass


class GlobalTableNotFoundException(ServiceError):
    pass


class PolicyNotFoundException(ServiceError):
    pass


class ResourceInUseException(ServiceError):
    pass


class TableNotFoundException(ServiceError):
    pass


class TableAlreadyExistsException(ServiceError):
    pass


class TableInUseException(ServiceError):
    pass


class ContinuousBackupsUnavailableException(ServiceError):
    pass


class PointInTimeRecoveryUnavailableException(ServiceError):
    pass


class InvalidRestoreTimeException(ServiceError):
    pass


class LimitExceededException(ServiceError):
    pass


class DuplicateItemException(ServiceError):
    pass


class ItemCollectionSizeLimitExceededException(ServiceError):
    pass


class ProvisionedThroughputExceededException(ServiceError):
    pass


class RequestLimitExceeded(ServiceError):
    pass


class ThrottlingException(ServiceError):
    pass


class ExpiredIteratorException(ServiceError):
    pass


class TrimmedDataAccessException(ServiceError):
    pass


class ExportConflictException(ServiceError):
    pass


class ExportNotFoundException(ServiceError):
    pass


class InvalidExportTimeException(ServiceError):
    pass


class BackupNotFoundException(ServiceError):
    pass


class BackupInUseException(ServiceError):
    pass


class ImportConflictException(ServiceError):
    pass


class ImportNotFoundException(ServiceError):
    pass


class InternalServerError(ServiceError):
    status = 500


class ServiceUnavailable(ServiceError):
    status = 503


class AnswerLost(ServiceError):
    """The connection is closed before the answer (`faults`), so the client cannot tell whether the request
    was performed. The server sends nothing, and a client in process raises its library's error for a closed
    connection."""

    status = 500


INVALID: Final = "One or more parameter values were invalid: "
CONDITION_FAILED: Final = "The conditional request failed"
DUPLICATE_KEYS: Final = "Provided list of item keys contains duplicates"
KEY_MISMATCH: Final = "The provided key element does not match the schema"
RESOURCE_NOT_FOUND: Final = "Requested resource not found"
STILL_IN_USE: Final = "Attempt to change a resource which is still in use: "
ITEM_TOO_LARGE: Final = "Item size has exceeded the maximum allowed size"
UPDATED_ITEM_TOO_LARGE: Final = "Item size to update has exceeded the maximum allowed size"
# [report] dynoxide issue 110: a scalar counts as a level too, so 31 lists or maps may lie around it.
TOO_DEEP: Final = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
# [report] extenddb issue 365 for the first; the second is DynamoDB Local's.
NAME_TOO_LONG: Final = "Attribute name is too large, must be less than 65536 bytes"
NAME_EMPTY: Final = "Empty attribute name"
INTERNAL: Final = "Internal server error"


def unacknowledged(cause: Exception) -> ServiceError:
    """The client's error for a commit that failed or whose outcome is unknown. The cause is set here because
    a compiled `raise ... from` does not set it."""
    answer: ServiceError = InternalServerError(INTERNAL)
    if getattr(cause, "is_final", False):
        answer = ServiceUnavailable(str(cause))
    answer.__cause__ = cause
    return answer


def bare(error: Exception) -> Exception:
    """The error that a body raised; a `ServiceError` and the errors that led to it lose their tracebacks.

    The frames of a traceback refer to the objects that keep the error until it is delivered: a cycle, which
    only the garbage collector could free.
    """
    if isinstance(error, ServiceError):
        drop_tracebacks(error)
    return error


def drop_tracebacks(error: BaseException) -> None:
    """Remove the tracebacks of an error and of the errors that led to it: their frames refer to other
    objects."""
    current: BaseException | None = error
    while current is not None:
        current.__traceback__ = None
        current = current.__context__

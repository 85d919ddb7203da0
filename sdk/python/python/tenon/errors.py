"""Errors: one class per canonical code of TensorFlow.

All are `TenonError`. Those that are natural as an error of Python's are that as well: an `InvalidArgumentError` is a `ValueError`, a
`NotFoundError` a `KeyError`, an `OutOfRangeError` an `IndexError`.
"""

from __future__ import annotations

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "TenonError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "make",
]


class TenonError(Exception):
    """Why a call failed.

    Attributes are empty texts where they are not known.
    """

    #: The canonical code, numbered as TensorFlow's.
    code: int = 2
    #: The whole message.
    message: str
    #: The node at which a step failed.
    node: str
    #: The op of the node.
    op: str
    #: The full name of the device.
    device: str
    #: The plugin of the kernel.
    plugin: str
    #: What to do, where the message says it after its last colon or semicolon.
    hint: str

    def __init__(
        self, message: str = "", *, node: str = "", op: str = "", device: str = "", plugin: str = ""
    ) -> None:
        message = str(message)
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.device = device
        self.plugin = plugin
        self.hint = _hint(message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (make, (self.code, self.message, self.node, self.op, self.device, self.plugin))


def _hint(message: str) -> str:
    at = max(message.rfind(": "), message.rfind("; "))
    return message[at + 2 :] if at >= 0 else ""


class CancelledError(TenonError):
    """The step was cancelled."""

    code = 1


class UnknownError(TenonError):
    """An error without a better code."""

    code = 2


class InvalidArgumentError(TenonError, ValueError):
    """The caller gave something that is wrong whatever the state of the system."""

    code = 3


class DeadlineExceededError(TenonError, TimeoutError):
    """The deadline passed first."""

    code = 4


class NotFoundError(TenonError, KeyError):
    """A thing that was named does not exist."""

    code = 5


class AlreadyExistsError(TenonError):
    """A thing to be made exists already."""

    code = 6


class PermissionDeniedError(TenonError, PermissionError):
    """The caller may not do this."""

    code = 7


class ResourceExhaustedError(TenonError, MemoryError):
    """Memory or another resource ran out."""

    code = 8


class FailedPreconditionError(TenonError):
    """The system is not in the state that the operation needs."""

    code = 9


class AbortedError(TenonError):
    """The operation was given up."""

    code = 10


class OutOfRangeError(TenonError, IndexError):
    """Past the valid range, such as the end of a sequence."""

    code = 11


class UnimplementedError(TenonError, NotImplementedError):
    """The operation is not supported."""

    code = 12


class InternalError(TenonError, RuntimeError):
    """An invariant is broken: a fault of Tenon's or of a plugin's."""

    code = 13


class UnavailableError(TenonError, ConnectionError):
    """A service or a device is not there at present."""

    code = 14


class DataLossError(TenonError):
    """Data is damaged."""

    code = 15


class UnauthenticatedError(TenonError):
    """The caller has not said who it is."""

    code = 16


_BY_CODE: dict[int, type[TenonError]] = {
    kind.code: kind
    for kind in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
        UnauthenticatedError,
    )
}


def make(
    code: int, message: str, node: str = "", op: str = "", device: str = "", plugin: str = ""
) -> TenonError:
    """The error of a code."""
    kind = _BY_CODE.get(code, UnknownError)
    return kind(message, node=node, op=op, device=device, plugin=plugin)

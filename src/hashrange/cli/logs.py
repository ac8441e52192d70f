"""The form of log lines: one line per record, as text for people or as JSON for machines.

A record's message is a fixed text; the variable parts are in its fields:

    log.info("started", extra={"fields": {"endpoint": url}})

    2026-01-01T00:00:00.000Z INFO started endpoint=http://127.0.0.1:8000
    {"time":"2026-01-01T00:00:00.000Z","level":"info","event":"started","endpoint":"http://127.0.0.1:8000"}
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import orjson

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
LINES_MAX: Final = 100


def configure(log_format: str, level: str, stream: TextIO) -> None:
    """Send the log to `stream`, in `log_format`, from `level` up."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(Bound())
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def show(logger: str) -> None:
    """Log all records of one logger, regardless of the level for the others."""
    logging.getLogger(logger).setLevel(logging.DEBUG)


class Bound(logging.Filter):
    """Passes `LINES_MAX` warnings and errors with the same message in a second, and counts the others.

    Clients can provoke such lines, and the log must not fill the disk. The next line that passes has in
    `not_logged` the number of lines that did not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seconds: dict[str, tuple[int, int]] = {}  # of each message: the second, the lines in it
        self._dropped: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        message, second = str(record.msg), int(record.created)
        began, lines = self._seconds.get(message, (second, 0))
        if began != second:
            lines = 0
        self._seconds[message] = (second, lines + 1)
        if lines >= LINES_MAX:
            self._dropped[message] = self._dropped.get(message, 0) + 1
            return False
        if dropped := self._dropped.pop(message, 0):
            record.fields = _fields(record) | {"not_logged": dropped}
        return True


class TextFormatter(logging.Formatter):
    """`time LEVEL message name=value …`; a value with spaces is quoted."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [_time(record), record.levelname, record.getMessage()]
        parts += [f"{name}={_quoted(value)}" for name, value in _fields(record).items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `time`, `level`, `event`, the fields, and `traceback` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}


def _quoted(value: object) -> str:
    text = str(value)
    if not text.isprintable():
        # Text that a client sent must not move the cursor of a terminal or begin a new line.
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return orjson.dumps(text).decode() if not text or any(c in text for c in ' "') else text

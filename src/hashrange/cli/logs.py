"""How log lines look: one line per record, as text for people or as JSON for machines.

A record's message is fixed text; what varies is in its fields:

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


def configure(log_format: str, level: str, stream: TextIO) -> None:
    """Send the log to `stream`, in `log_format`, from `level` up."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


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
    return orjson.dumps(text).decode() if not text or any(c in text for c in ' "\n') else text

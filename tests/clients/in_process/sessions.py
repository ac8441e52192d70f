"""cachelib's cache, and Flask-Session, which both make their table themselves."""

import json

import boto3
from cachelib.dynamodb import DynamoDbCache
from flask import Flask, session
from flask_session import Session

import hashrange


@hashrange.local
def cached() -> dict[str, object]:
    cache = DynamoDbCache(table_name="cache")
    seen: dict[str, object] = {
        "set": cache.set("a", {"n": [1, 2]}),
        "get": cache.get("a"),
        "add": cache.add("a", "again"),
        "missing": cache.get("b"),
        "has": cache.has("a"),
        "deleted": cache.delete("a"),
        "gone": cache.get("a"),
    }
    seen["clear"] = cache.clear()
    return seen


@hashrange.local
def counted() -> list[str]:
    app = Flask(__name__)
    app.config.update(SESSION_TYPE="dynamodb", SESSION_DYNAMODB=boto3.resource("dynamodb"))
    Session(app)

    @app.get("/")
    def count() -> str:
        session["visits"] = session.get("visits", 0) + 1
        return str(session["visits"])

    first, second = app.test_client(), app.test_client()
    return [one.get("/").text for one in (first, first, second, first)]


print(json.dumps({"cached": cached(), "counted": counted()}))

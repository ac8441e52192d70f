"""Celery's result backend: tasks that run at once, and keep their results in DynamoDB."""

import json

from celery import Celery

import hashrange

app = Celery("tasks", backend="dynamodb://key:secret@eu-west-1/results?ttl_seconds=60")
app.conf.update(task_always_eager=True, task_store_eager_result=True)


@app.task
def add(one: int, other: int) -> int:
    return one + other


@app.task
def fail() -> None:
    raise ValueError("on purpose")


with hashrange.local(region="eu-west-1") as database:
    added, failed = add.delay(2, 3), fail.delay()
    stored = app.AsyncResult(added.id)
    seen = {
        "value": stored.get(),
        "state": stored.state,
        "failed": app.AsyncResult(failed.id).state,
        "unknown": app.AsyncResult("unknown").state,
        "table": database.execute("ListTables", {})["TableNames"],
    }
    stored.forget()
    seen["forgotten"] = app.AsyncResult(added.id).state
    database.clock.advance("1h")
    seen["after_expiry"] = database.execute("Scan", {"TableName": "results"})["Count"]

print(json.dumps(seen))

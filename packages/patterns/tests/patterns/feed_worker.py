"""A worker in a process of its own: brings posts to followers until it is killed.

Started as `python -m patterns.feed_worker ENDPOINT TABLE`. It prints a line when it begins, and one for each
job.
"""

from __future__ import annotations

import sys

import boto3

from endpoints import connection
from hashrange_patterns import Feeds

SECRET = b"0123456789abcdef"


def main(endpoint: str, table: str) -> None:
    """Work until killed."""
    feeds = Feeds(boto3.client("dynamodb", **connection(endpoint)), table, SECRET)
    print("ready", flush=True)
    while True:
        if feeds.work():
            print("worked", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

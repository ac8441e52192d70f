"""A worker that takes jobs one by one and does them; several may run, in threads or processes.

    def resize(job: Job) -> list[Item]:
        return [{"Put": {"TableName": "blog", "Item": thumbnail_of(job.payload)}}]

    JobWorker(Jobs(client, "blog", "resize"), resize).run(stop)

What the work gives is written exactly once, in one transaction with the job's end; what it does elsewhere, at
least once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from hashrange_patterns.jobs import Job, Jobs
from hashrange_patterns.leases import Leases, reason_of, repeat
from hashrange_patterns.requests import Runtime, is_passing
from hashrange_patterns.tables import Item


class JobWorker:
    """Does jobs: `handle` takes one, and returns members of a TransactWriteItems, or None.

    A job whose handling raises is tried again after `retry_seconds`, twice as long after each failure, and
    put aside after its last attempt. While the table is throttled or cannot be reached, the worker waits, and
    the attempt does not count. A thread extends the lease of a job that takes long.
    """

    def __init__(
        self,
        jobs: Jobs,
        handle: Callable[[Job], Sequence[Item] | None],
        *,
        poll_seconds: float = 1.0,
        retry_seconds: float = 1.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        self._jobs = jobs
        self._handle = handle
        self._poll_seconds = poll_seconds
        self._retry_seconds = retry_seconds
        self._runtime = runtime

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; the current job is finished, or given back."""
        repeat(lambda: self.step() or stop.wait(self._poll_seconds), stop, self._runtime)

    def step(self) -> bool:
        """Take and do a job; False if none is due.

        Raises the table's error if the table is throttled or cannot be reached; the job is given back before.
        """
        job = self._jobs.take()
        if job is None:
            return False
        with Leases([job], lambda jobs: self._jobs.extend(jobs[0]), self._jobs.lease_seconds):
            try:
                self._jobs.done(job, *(self._handle(job) or ()))
            except Exception as error:
                if is_passing(error):
                    self._jobs.give_back(job)
                    raise
                delay = self._retry_seconds * 2.0 ** min(job.attempts - 1, 10)
                self._jobs.retry(job, reason_of(error), delay_seconds=delay)
        return True

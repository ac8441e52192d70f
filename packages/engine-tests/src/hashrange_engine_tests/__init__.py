"""The tests that every storage engine passes, as plain functions.

    for check in CHECKS: check(opener)              every engine
    for check in DURABLE_CHECKS: check(opener)      engines that keep their records when closed
    for check in SHARED_CHECKS: check(opener)       engines of which several may be open on one store

`opener(name)` opens the store with that name: a new one the first time, the same one later. Only the durable
checks open one name twice, and the shared ones, which have it open twice at a time. A check closes what it
opened. Commits are made to fail through `Engine.commit_fault` (`faults`).

    records       the checks of single bodies: what they read and write
    transactions  the checks of transactions: isolation, order, failure, what survives
    stamps        the checks of the stamps of bodies
    loops         the checks of event loops and queues
    steps         the checks of interleavings: another body at each step of a body and its commit
    shared        the checks of logs and stamps while a commit of another engine is under way
    faults        makes commits fail
    reruns        an engine that runs every body several times

The code above the engines is tested with `reruns.Reruns`, which runs every body several times, as an engine
may. An engine that passes the checks passes them under it as well.

Refuses to know: any engine, any test framework.
"""

from __future__ import annotations

from typing import Final

from hashrange_engine_tests import loops, records, shared, stamps, steps, transactions
from hashrange_engine_tests.records import Check, Opener

__all__ = ["CHECKS", "DURABLE_CHECKS", "SHARED_CHECKS", "Check", "Opener"]

CHECKS: Final[tuple[Check, ...]] = (
    records.check_put_get_delete,
    records.check_results_and_exceptions_reach_the_caller,
    records.check_a_body_sees_its_own_writes,
    records.check_a_failing_body_leaves_nothing,
    records.check_order_is_of_unsigned_bytes,
    records.check_partitions_do_not_touch,
    records.check_scan_space,
    records.check_long_addresses,
    records.check_long_scans,
    records.check_what_is_likely_changes_no_result,
    records.check_totals,
    records.check_delete_space,
    records.check_append_numbers_increase,
    transactions.check_reads_are_of_one_moment,
    transactions.check_writes_are_serializable,
    loops.check_late_outcomes_come_through_the_loop,
    loops.check_deferred_commits,
    loops.check_bodies_that_read_end_on_a_loop,
    loops.check_done_may_submit,
    loops.check_a_full_engine_queues,
    loops.check_an_interrupted_body_in_the_queue_is_stopped,
    loops.check_a_later_loop_takes_over,
    loops.check_a_closed_loop_stops_nobody,
    loops.check_close_waits_and_is_final,
    loops.check_close_ends_queued_bodies,
    transactions.check_stamps_never_decrease,
    transactions.check_stamps_of_many_threads_never_decrease,
    transactions.check_a_failed_commit_shows_nothing,
    transactions.check_an_unknown_commit_is_whole_or_nothing,
    transactions.check_an_interrupted_body_leaves_nothing,
    transactions.check_a_failed_commit_stamps_nothing,
    stamps.check_stamps_of_bodies_increase,
    stamps.check_a_body_has_one_stamp,
    stamps.check_a_failing_body_keeps_nothing,
    stamps.check_stamps_of_many_threads_increase,
    steps.check_a_body_between_any_two_steps_of_a_commit,
    steps.check_a_body_between_any_two_rounds_of_the_loop,
)

DURABLE_CHECKS: Final[tuple[Check, ...]] = (
    transactions.check_records_survive_closing,
    transactions.check_stamps_survive_closing,
    stamps.check_stamps_of_bodies_survive_closing,
    transactions.check_failed_commits_survive_no_closing,
    loops.check_queued_bodies_survive_closing,
)

SHARED_CHECKS: Final[tuple[Check, ...]] = (
    steps.check_another_engine_between_any_two_steps,
    shared.check_what_was_read_of_a_log_never_changes,
    shared.check_stamps_of_logs_under_way_never_decrease,
    shared.check_what_is_kept_up_to_a_stamp_never_changes,
)

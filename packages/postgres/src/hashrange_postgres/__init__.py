"""The engine for many servers: a schema of a PostgreSQL database, with group commit.

    engine        `PostgresEngine`: runs bodies, reads and writes
    commits       one group after the other, and what becomes of its bodies
    groups        a group: its bodies, all that they read and write, and how far its commit has come
    members       a body in a group
    turns         whose turn it is to commit, and what bodies run over until then
    waiting       bodies that wait for the store's lock
    running       runs one body
    bodies        the transactions of bodies over what is known
    direct        the readers and transactions of bodies that ask PostgreSQL for each record
    writer        the connection that writes: sends groups, and looks up what became of one
    fetching      fetches the records that bodies miss, many at once
    reads         runs read bodies
    cache         records with their versions; space 0
    wire          how the engine speaks to PostgreSQL: connections, statements, arrays
    upkeep        deletes the records of deleted spaces
    snapshot      a store at one moment, for reading only
    moving        a schema as the target of a copy
    schema        makes and checks the tables and functions of a store; `schema.sql` has them
    stores        stores, for `hashrange check` and `hashrange copy`
    serving       the options of `hashrange serve`
    driver        says what to do where psycopg is missing
    ring          what the engine adds to Hashrange

The path of a commit:

    body ──> runs over what is known ──> COLLECTING ── its turn ──> SENT ──────────────> committed: outcomes
                   │                     the group that              │ ^   │
                   │                     it has joined    overtaken, │ │   │ no answer
                   │                                      or at once v │   v
                   │                                           LOCKING │  LOST ──> connects again, looks up
                   │                                                 │ │
                   │                                  its bodies run again if they have to
                   │ reads more than records
                   v
             waits for the store's lock ── its turn ──> RUNNING: the lock is taken, and the body runs ──> SENT

One group is LOCKING, RUNNING, SENT or LOST at a time; the next one collects meanwhile. `Turns.lock` guards
all of this. Bodies run on the event loop, or on the threads that call `write`; those under the store's lock
on the commit thread. The event loop waits for the answers to a collected group (`Group.by_loop`), and settles
it if it was committed. In all other cases the commit thread does, in `Commits._conclude`.

A group is sent in one of three ways. Its bodies have run over what is known, so it is one statement:
`commit_group` compares versions, locks and writes. If another engine has changed what they read, nothing is
written; the group locks its records, gets those that have changed, runs its bodies again over them, and
commits under the locks, so nobody can overtake it again. If that happens to one group in eight, groups lock
first (`Turns.locks_first`): that is one more round trip, but who waits for a lock does not have to begin
again. A body that reads more than records asks PostgreSQL for them, under the lock of the store.

Why write bodies are serializable. A body runs over records that may be out of date: those of the group that
collects, of the group whose turn it is, of the cache. It notes which version of each record it read. A
version stands for one value, because a group never changes after bodies outside of it can read it, except by
getting another version: only its own bodies, which are committed with it, read the collecting group, and a
group whose bodies run again; the writes of a body under the store's lock are read after its commit.
`commit_group` in `schema.sql` commits a whole group in one transaction, and only if everything that its
bodies read is unchanged; otherwise they run again. What this depends on stays locked until the transaction
ends:

- A record that exists: its row is locked, and then its version compared. A written record is locked by the
  statement that writes it, which waits for other writers and compares the version that they have left.
- A record that was read as absent: the index lets only one transaction create it. If it is to stay absent,
  the commit creates it and deletes it again, so nobody ever sees it.
- A record that is deleted without having been read and is not there; a range; totals; a number or a stamp
  that a body asks for; the catalog when it is changed: the commit holds the exclusive lock of the store, and
  no other commit is under way.
- The catalog when it is only read: all commits share the lock of the store, and its changes exclude them.

Numbers of logs and stamps of bodies come from sequences, after all of these locks (`draw`). No commit waits
for the end of another one because of them, so commits may end in another order than that of their numbers.
Therefore a reader does not read a log beyond the numbers of commits under way (`marks`).

So a transaction holds all its locks until its end (strict two-phase locking), and transactions are
serializable in the order of their commits. A snapshot of PostgreSQL shows a prefix of this order, and each
read body, like each group of bodies that wrote nothing, reads from one such snapshot.

Only this package imports psycopg. Refuses to know: what records mean.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["CACHE_BYTES", "PostgresEngine"]

if TYPE_CHECKING:
    from hashrange_postgres.engine import CACHE_BYTES, PostgresEngine
else:

    def __getattr__(name: str) -> Any:
        # (the driver loads slowly, and the ring is found before anybody wants the engine)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from hashrange_postgres import engine

        return getattr(engine, name)

"""The engine for many servers: a schema of a PostgreSQL database, with group commit.

    engine        `PostgresEngine`: runs bodies, reads and writes
    bodies        the transactions of bodies that commit in groups
    direct        the readers and transactions of bodies that ask PostgreSQL for each record
    groups        the reads and writes of a group of bodies, and how they are sent
    members       a body in a group
    contended     bodies that wait for locks
    alone         bodies that run alone, in place of a commit
    commits       collects groups, commits one after another, and finds out the outcome of a cut-off commit
    fetching      fetches the records that bodies miss, many at once
    reads         runs read bodies
    cache         records with their versions; space 0
    loops         the event loop on which outcomes are delivered
    lines         connections on which the event loop waits for answers
    arrays        arrays in PostgreSQL's binary form
    connections   connections, and the types and errors of the driver
    snapshot      a store at one moment, for reading only
    moving        a schema as the target of a copy
    schema        makes and checks the tables and functions of a store; `schema.sql` has them

Why write bodies are serializable. A body runs over records that may be out of date: those of the group that
collects, of the group that is being committed, of the cache. It notes which version of each record it read.
A version stands for one value, because a group never changes after bodies outside of it can read it: only its
own bodies, which are committed with it, read the collecting group; a group of bodies under locks becomes the
committing group after all of them have run; the writes of a body that runs alone are read after its commit.
`commit_group` in `schema.sql` commits a whole group in one transaction, and only if everything that its
bodies read is unchanged; otherwise they run again. What this depends on stays locked until the transaction
ends:

- A record that exists: its row is locked, and then its version compared. A written record is locked by the
  statement that writes it, which waits for other writers and compares the version that they have left.
- A record that was read as absent, and is created: the index lets only one transaction create it.
- A record that was read as absent and is not made, or is deleted without having been read and is not there;
  a range; totals; a number or a stamp that a body asks for; the catalog when it is changed: the commit
  holds the exclusive lock of the store, and no other commit is under way.
- The catalog when it is only read: all commits share the lock of the store, and its changes exclude them.

So a transaction holds all its locks until its end (strict two-phase locking), and transactions are
serializable in the order of their commits. A snapshot of PostgreSQL shows a prefix of this order, and each
read body, like each group of bodies that wrote nothing, reads from one such snapshot.

Only this package imports psycopg. Refuses to know: what records mean.
"""

from hashrange.storage.postgres.engine import CACHE_BYTES, PostgresEngine

__all__ = ["CACHE_BYTES", "PostgresEngine"]

"""The engine for many servers: a schema of a PostgreSQL database, with group commit.

    engine        `PostgresEngine`: runs bodies, reads and writes
    bodies        the transactions of bodies that commit in groups
    direct        the readers and transactions of bodies that ask PostgreSQL for each record
    groups        the reads and writes of a group of bodies, and how they are sent
    members       a body in a group
    contended     bodies that wait for locks
    alone         bodies that run alone, in the place of a commit
    commits       collects groups, commits one after another, and finds out what became of a cut commit
    fetching      fetches the records that bodies miss, many at once
    reads         runs read bodies
    cache         records with their versions; space 0
    loops         the event loop that outcomes are delivered on
    lines         connections on which the event loop waits for answers
    arrays        arrays in PostgreSQL's binary form
    connections   connections, and the types and errors of the driver
    snapshot      a store at one moment, for reading only
    moving        a schema as the target of a copy
    schema        makes and checks the tables and functions of a store; `schema.sql` has them

Why write bodies are serializable. A body runs over records that may be out of date: those of the group that
collects, of the group that is being committed, of the cache. It notes which version of each record it read.
A version stands for one value, because no group changes any more when bodies outside of it can read it: the
group that collects is read by its own bodies only, which are committed with it; the group of bodies under
locks is the committing one when all of them have run; a body that runs alone is read when it is committed.
`commit_group` in `schema.sql` commits a whole group in one transaction, and only if all that its bodies read
is still so; else they run again. Whatever decides this stays locked to the end of the transaction:

- A record that is there: its row is locked, and then its version compared. What is written is locked by the
  statement that writes it, which waits for others and compares the version that they have left.
- A record that was read as absent, and is made: the index lets only one transaction make it.
- A record that was read as absent and is not made, or is deleted without having been read and is not there;
  a range; totals; a number or a stamp that a body asks for; the catalog when it is changed: the commit
  holds the exclusive lock of the store, and no other commit is under way.
- The catalog when it is only read: all commits share the lock of the store, and its changes exclude them.

So all locks of a transaction are held together at its end (strict two-phase locking), and transactions are
serializable in the order of their commits. A snapshot of PostgreSQL shows a prefix of this order: a read
body, and bodies that wrote nothing, are of one such moment.

Only this package imports psycopg. Refuses to know: what records mean.
"""

from hashrange.storage.postgres.engine import CACHE_BYTES, PostgresEngine

__all__ = ["CACHE_BYTES", "PostgresEngine"]

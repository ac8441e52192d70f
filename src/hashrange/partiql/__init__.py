"""PartiQL for DynamoDB: turns statements into the reads and writes that the other operations use.

    tokens      the lexicon and the cursor, on the lexer of `expressions`
    reserved    the words that must be quoted to be names
    literals    turns literals into attribute values
    conditions  the grammar of operands, conditions and sums; makes the trees of `expressions`
    statements  the statements as values, and their printer
    parser      text to statement
    prepared    compiles a statement, caches it by its text, and binds it to a request's parameters
    access      decides from the WHERE clause how to read: by a query, several queries, a scan, or one get
    reads       SELECT, by `tables.reads.ranges`
    changes     INSERT, UPDATE, DELETE and EXISTS, by `tables.writes.read_modify_write`

The life of a statement: `prepare` parses and compiles its text, once; `bind` checks the parameters of a
request and adds them; in the engine's body `access.plan` matches the WHERE clause with the key of the
table or index, and `reads.select` reads a page, or `changes.write_of` makes the write that `changes.perform`
runs.

There is only one evaluator: `expressions` compiles the conditions and updates of statements as well.
Whatever the text, these modules raise only `ServiceError`.
"""

from hashrange.partiql.prepared import Bound, Prepared, admit, bind, prepare, reads_only

__all__ = ["Bound", "Prepared", "admit", "bind", "prepare", "reads_only"]

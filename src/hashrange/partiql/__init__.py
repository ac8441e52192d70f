"""PartiQL for DynamoDB: statements to the same reads and writes that the other operations make.

    tokens      the lexicon and the cursor, on the lexer of `expressions`
    reserved    the words that a name must be quoted for
    literals    literals to attribute values
    conditions  the grammar of operands, conditions and sums, to the trees of `expressions`
    statements  the statements as values, and their printer
    parser      text to statement
    prepared    a statement compiled and kept by its text, and bound to a request's parameters
    access      what the WHERE clause says of the key: query, several queries, scan or one item
    reads       SELECT, by `tables.data.ranges`
    changes     INSERT, UPDATE, DELETE and EXISTS, by `tables.data.writes`

The life of a statement: `prepare` parses and compiles its text, once; `bind` checks the parameters of a
request and puts them in; in the engine's body `access.plan` matches the WHERE clause with the key of the
table or index, and `reads.select` reads a page, or `changes.write_of` makes the write that `changes.perform`
runs.

There is one evaluator: conditions and updates compile with `expressions`. All of these raise
`ServiceError` and nothing else, whatever the text.
"""

from hashrange.partiql.prepared import Bound, Prepared, bind, prepare

__all__ = ["Bound", "Prepared", "bind", "prepare"]

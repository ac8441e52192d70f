"""Judges histories of concurrent clients: does the promised consistency allow every answer?

    python -m consistency [--rounds N] [--seed N] [--kills] [--postgres SERVERS | --endpoint URL,URL]

with PYTHONPATH=src:tests.

    __main__         the command line
    rounds           a round: start, let clients work, hurt the servers meanwhile, read all, judge
    deployments      the servers under test, and how they can be hurt
    on_postgres      several servers over one PostgreSQL, each through a proxy (tests/proxy.py)
    on_patroni       two servers over a group of PostgreSQL servers (patroni), which fails over
    client           one request at a time; an outcome is known, or is said to be unknown
    history          the operations as the clients saw them
    tables           the table that the workloads share
    registers counters sets transfers lists
                     the workloads: each has its operations and the judge of their history
    streams          a consumer of the tables' streams: they make the tables, and the indexes agree
    past             backups and restores of moments in the midst of the load
    liveness         each request is answered, and after the last fault the servers work again
    linearizability  the judge of registers: the algorithm of Wing and Gong, with Lowe's memory
    serializability  the judge of transactions on lists: Elle's inference of who came before whom
    cycles           cycles of such a graph, and their names

A judge sees only requests, answers and moments of one clock. An operation of unknown outcome may take effect
at any later moment, or never. No package registry has a published checker, so these were written here; their
tests compare them with a search through all orders.
"""

"""A hostile run: a mass of broken requests to a real server, over pipelined connections.

    python -m hostile         as many mutations as you have time for (`make hostile MUTATIONS=1000000`)
    seeds       valid requests of every operation, and those of the golden scripts
    material    the values and bytes that mutations put in wrong places
    mutations   a broken request from a valid one: its values, its JSON text, its headers, its HTTP bytes
    answers     what a proper answer is
    shrinking   a smaller request that fails in the same way
    server      a server in a process of its own: its log, its memory, its tables
    run         sends, counts, checks
    onlookers   the same requests with everything on that looks at requests, and with nothing

test_hostile_servers turns it round: there every command meets servers that answer wrongly, late or never.

All mutations are drawn from a seed. Two runs of a seed differ only in ARNs and iterators, which contain
times.
"""

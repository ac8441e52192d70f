"""Who observes the requests of a database: fault rules, records of costs, insights, and what rings add.

observer   the one hook around a request, and the one value that all observers see
observers  those of a database, and whether there are any
record     what a request did and cost
noting     makes the record of a request from its answer and its bill
patterns   the access pattern of a request: its expressions and its key, without values
"""

"""What requests cost in money, and what would make them cheaper.

    meter      counts what requests consume, while it is on
    counts     what was counted
    agents     who sends a request
    stored     what the tables store

    statement  counts, priced
    advice     what would save money, with the figures
    plans      on demand, provisioned or reserved, for a load
    scaling    auto scaling, replayed over a load
    loads      loads as CSV

The first half counts units and knows no prices; the second takes counts and prices (`hashrange.prices`) and
knows no database, so commands price what a server has counted. docs/load.md describes it.
"""

"""The one way to read items in order.

    ranges   `read_page`: the only ordered read
    sources  which table or index a read uses, which attributes it shows, and what the read costs
"""

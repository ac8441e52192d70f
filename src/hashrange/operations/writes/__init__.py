"""Operations that change items: one item, batches, transactions.

    single_write  turns a request into a write, and the outcome of the write into an answer
"""

"""Operations that change items: one, many, or all or nothing.

    single_write     what they share: a request becomes a write, its outcome an answer
"""

"""Reports about a whole store, for operators.

    check        the integrity checker: whether the records agree with each other
    mending      puts right what the checker found
    overview     the tables' sizes and states, and how far builds are
    owners       which table or index the records of a space belong to: for messages about damage
"""

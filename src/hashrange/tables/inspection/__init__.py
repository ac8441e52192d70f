"""What operators ask of a whole store.

    check        the integrity checker: whether the records agree with each other
    overview     the tables' sizes and states, and how far builds are
    owners       whose records lie in a space: for messages about damage
"""

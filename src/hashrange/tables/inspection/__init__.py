"""Reports about a whole store, for operators.

    check          the integrity checker: whether the records agree with each other
    stream_checks  the checks of streams
    numbering      the logs of a store, with the next numbers of the engine
    problems       a problem, and what all checks share
    mending        corrects what the checker found
    overview       the tables' sizes and states, and the progress of builds
    owners         which table or index the records of a space belong to: for messages about damage
"""

"""Which keys are used most, and which are throttled most.

    sketch        the most frequent of many keys, in bounded memory
    counting      decides whether keys are counted for contributor insights
    contributors  counts the keys of the tables and indexes whose contributor insights are enabled
    throttled     which members of a request were throttled

The operations that enable contributor insights are in `operations.insights`. Nothing here runs while no table
has them and nobody looks.
"""

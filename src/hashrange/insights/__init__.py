"""Contributor insights: which keys are used most, and which are throttled most.

    sketch        the most frequent of many keys, in bounded memory
    counting      decides whether keys are counted at all
    contributors  counts the keys of the tables and indexes whose insights are enabled

The operations that enable insights are in `operations.insights`. Nothing here runs while no table has them.
"""

"""Compares decisions on random policies with those of somebody else's simulator of IAM.

    cases      random policies and requests
    outside    the other simulator, a Node.js program in node/
    known      the differences that are known, each with its reason
    comparing  decides each case twice, and reports the differences

`python -m judges --help` has more. docs/decisions/0030-outside-judge.md says why.
"""

"""The two sides: each is a table behind the public API.

    calls        a side's requests: what its errors mean, which are sent again, how fast they may follow
    bodies       large requests and answers, quickly
    pace         how many capacity units a second are used
    reading      items by their keys, and pages of a scan
    writing      writes that hold only if what they write over is what was read
    streams      the changes of a table since a position
    definitions  what a table must be, and how the two tables differ

Refuses to know what the other side has.
"""

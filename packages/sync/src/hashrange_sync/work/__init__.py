"""What a process does with a pair.

    applying    looks at items on both sides, decides, writes and stores the states
    recovering  finds out which writes were made, where a process died or got no answer
    sweeping    the first copy, and the comparison after a gap
    verifying   compares both tables, and changes nothing

All of it may be interrupted at any request, and begun again.
"""

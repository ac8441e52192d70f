"""Commands on loads: recorded, repeated, made, and watched.

    record  `record`: recordings of a running server
    replay  `replay`: a recorded load again, on any endpoint
    load    `load`: a load of a named mix
    top     `top`: the busiest keys of a running server, live
    tables  tables for people, and numbers in few characters
"""

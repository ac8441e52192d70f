"""The lab: what AWS does and a laptop does not, and what a load costs there.

    behaviour   throttling, partitions and late reads, as on AWS
    loads       loads on an endpoint: mixes, recorded loads again
    recordings  loads in files: their form, their reader and their writer
    heat        the busiest keys, while somebody looks
    money       counts and prices what requests consume; advice; auto scaling, replayed
    admin       the endpoints of the admin plane
    pages       the pages of the console
    commands    `costs`, `load`, `record`, `replay`, `top`, and the options of `serve`
    ring        what the lab adds to Hashrange
"""

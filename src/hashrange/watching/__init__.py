"""Who watches the requests of a database: fault rules, recorders of what requests cost, onlookers and tapes.

interest  the observers of a database, and whether it has any
watch     a request's way past the observers
sights    what an onlooker sees of a request
tape      records the requests in a file
"""

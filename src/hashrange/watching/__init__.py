"""Who watches the requests of a database: fault rules, and recorders of what requests cost.

interest  the observers of a database, and whether it has any
watch     a request's way past the observers
"""

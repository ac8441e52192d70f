"""The tools. Each public method of their classes is a tool: its docstring is what the model reads.

tables    which tables there are, and what is in one
reading   items by key, by Query, Scan and PartiQL, each with its cost
changes   the newest changes of a stream
past      the past of a table, and undo
money     what requests cost, and what a larger load would do
policies  access policies: simulate and suggest
writing   writes of items, and tables from models
"""

"""The definitions of tables.

    table        the definition of a table and of its indexes, as it is stored
    spans        the definition of a table's history: its spans of time and its users; moments as stamps
    catalog      tables by name: create, open, change, remove
    dropped      deleted tables whose items are still needed
    states       how CREATING, UPDATING and DELETING end
    replicas     a global table, as the clients of each of its regions see it
"""

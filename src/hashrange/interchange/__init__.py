"""The files in which items come and go: those of ImportTable, and of exports to S3.

    compression    GZIP, ZSTD, NONE
    lines          lines of a stream, each of bounded length
    dynamodb_json  an item a line: {"Item": {"id": {"S": "x"}}}
    csv_files      a line of names, then an item a line
    ion            an item a line, as Amazon Ion in text
    reading        the items of an object, whatever its format
    plain_json     items of plain values, and lists of them in JSON
    exports        the objects of an export: data, manifests, checksums

A reader gives items as DynamoDB's JSON; whether they keep the rules of values and of a table is decided by
who takes them. A row that is no item is a `Bad` (`rows`) in the place of the item. All of it works in
constant memory, except a list in JSON.
"""

"""The files of items that are imported and exported: those of ImportTable, and of exports to S3.

    compression    GZIP, ZSTD, NONE
    lines          lines of a stream, each of bounded length
    dynamodb_json  an item a line: {"Item": {"id": {"S": "x"}}}
    csv_files      a line of names, then an item a line
    csv_types      the types of a CSV's columns
    ion            an item a line, as Amazon Ion in text
    ion_text       the text form of Ion
    item_files     the items of a file in JSON, by the form of its content
    object_rows    the items of an object, whatever its format
    rows           what a reader gives for a row that holds no item
    plain_json     items of plain values, and lists of them in JSON
    item_texts     items as lines of JSON and of CSV, for people and other programs
    exports        the objects of an export: data, manifests, checksums
    descriptions   the request of CreateTable for a table that DescribeTable describes

A reader yields items as DynamoDB's JSON; its caller checks the rules of values and of the table. A row that
is not an item yields a `Bad` (`rows`) instead. Everything works in constant memory, except a list in JSON.
"""

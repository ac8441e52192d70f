"""Tables as they were at a moment, or what changed between two, to the objects of a bucket.

    export_table     begin an export
    describe_export  how far it is
    list_exports     the exports of the last 90 days
    description      an export as answers show it
    filters          which items, and what of them, an export shows

The work itself is done in the background: `tables.exports`.

Source: API reference; Developer Guide, "DynamoDB data export to Amazon S3"; ack-api-quirks of October 2026,
DDB-EXPORT-001 to 026.
"""

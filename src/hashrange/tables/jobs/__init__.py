"""Jobs: work that a request started, and that may wait long for a bucket, a directory or a data stream.

    ondemand     makes the runner of a kind of job when the first job of that kind exists
    exports      a table at a moment, or what changed, as objects of a bucket
    imports      new tables from the objects of a bucket
    bulk         many items at once into an existing table, from the objects of a bucket
    backups      a table's items as of a moment, in files
    deliveries   a table's changes, sent to a Kinesis data stream
    transfers    runs exports, imports and bulk operations: a unit for each job in progress
    objects      reads the rows of the objects of a bucket
    job_records  the stored records of jobs and backups
    steps        runs the steps of jobs one at a time, and keeps what they have open
"""

"""What the objects of a copy hold, byte for byte.

    objects    the form of every object: a header, compressed chunks, a digest
    sealing    the key file, and the encryption of chunks
    batches    committed batches, one after the other
    segments   the batches between two moments, each segment chained to the one before it
    manifests  which files make up a base, and where its batches go on
    names      the names of objects in the bucket

Refuses to know: buckets, engines, threads and time.
"""

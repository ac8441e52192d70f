"""Work on a whole data directory, without the engine.

    salvage         reads all records of a directory, damaged or not, that can be read
    repair          makes a sound store of the records that can be read
    new_directory   a directory in which a store is made that comes from elsewhere
    directory_copy  a directory as the source and the target of a copy
    replay          a directory of the files of a checkpoint and the batches after it
"""

"""What the operating system's files need beyond `open`.

durable      files and names that are there after a crash of the machine; files of their owner only
regular      opens regular files only, in folders that other programs write to
descriptors  how many files the process may have open, and how they are divided
"""

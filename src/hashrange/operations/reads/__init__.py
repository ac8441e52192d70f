"""Operations that read items: by their keys, and by pages of a table or an index."""

"""Operations on tables as a whole, and the rules of what they declare."""

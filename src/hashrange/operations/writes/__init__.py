"""Operations that change items: one, many, or all or nothing."""

"""Operations whose requests are PartiQL statements."""

"""The engine contract (`api`), its test suite (`contract`) and the engines (`memory`, `embedded`)."""

"""`python -m hashrange` is the `hashrange` command."""

from hashrange.cli import main

if __name__ == "__main__":
    main(prog_name="hashrange")

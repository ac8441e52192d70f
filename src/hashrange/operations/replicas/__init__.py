"""The members of a global table: how UpdateTable makes, changes and removes them."""

"""The endpoints of the lab on the admin plane."""

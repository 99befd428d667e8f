"""One file for each kind of database, and how it is loaded fast."""

"""The functions of Sql beside SeaTunnel's rules: `make sql-parity`.  README.md says how."""

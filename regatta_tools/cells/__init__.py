"""A new cell and how far it is: the six steps of the protocol, section 8 (docs/new-cell.md)."""

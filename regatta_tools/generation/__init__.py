"""Grounded generation: what generators of suites are told of a cell, whole and with a receipt (protocol, section 4)."""

"""The provenance audit: what the citations say, and whether the text of the law bears it out."""

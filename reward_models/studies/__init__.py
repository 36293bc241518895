"""Studies: runs by id, their work, their rows and reports."""

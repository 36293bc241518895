"""The paper's study: every table and figure as a list of runs, run anywhere, reported from their rows."""

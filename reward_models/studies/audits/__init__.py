"""Audits as a study: a unit for each model, optimiser and kind of starts, so that a killed audit is resumed."""

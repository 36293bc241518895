"""Audits of judges: precision when the score is optimised; section 4 of the goal-achievement specification."""

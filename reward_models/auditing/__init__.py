"""What happens when the score of a reward model is optimised: section 4 of the goal-achievement specification."""

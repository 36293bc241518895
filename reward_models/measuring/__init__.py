"""Accuracy of judges: exact shares with intervals, the hard suite, rules, heat maps."""

"""Hard-negative mining: a model is trained on what its own optimisers find, with true labels, until they find nothing.

It starts from a model trained by ``TrainingConfig``. A *round* draws a replay of labelled pairs, trains on it, lets
gradient and search at the model, and keeps their ends, labelled by the truth, for the replays of later rounds. The
first round without a false claim is the last, or that of the greatest number.
"""

"""The ideal observer: the best decision that the generator leaves open."""

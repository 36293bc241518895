"""The hard suite of a model beside the ideal observer."""

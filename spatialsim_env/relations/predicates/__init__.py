"""The 30 predicates of Rel3D as rules with signed margins."""

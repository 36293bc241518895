"""Models of spatial relations in 3D, their training and what they are worth as rewards."""

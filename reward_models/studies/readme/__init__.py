"""Tables of the README and the documentation, from recorded rows."""

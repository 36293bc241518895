"""Compiled parts of networks: message passing and matching as loops over rows."""

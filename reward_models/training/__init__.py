"""Training of networks: the protocol of each benchmark, hardening, stored sets."""

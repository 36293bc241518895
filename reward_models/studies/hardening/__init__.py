"""The ablation of hardening."""

"""The vocabulary of checks: findings, and the registry of rules that raise them."""

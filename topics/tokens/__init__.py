"""Tokens: sign-in by SASL/OAUTHBEARER, from one source in a process, for every Kafka client."""

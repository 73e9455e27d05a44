"""UFODT's parts: an online decision tree that buys the features it asks for."""

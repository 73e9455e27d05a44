"""The web application: people answer the label requests of an installation. It starts in `application.py`.

It reads topics as any consumer does and writes labels through `topics`. It imports nothing of models or
workers.
"""

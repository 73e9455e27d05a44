"""The web application: people answer the label requests of an installation. The door is `application.py`.

It reads topics as any consumer would and writes labels through `topics`; it knows neither models nor workers.
"""

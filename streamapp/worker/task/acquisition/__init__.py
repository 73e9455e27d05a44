"""Feature acquisition: what opens episodes, leads them on, and answers at their end."""

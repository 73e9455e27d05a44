"""Episodes: records whose features are being bought, and the table of those that are open."""

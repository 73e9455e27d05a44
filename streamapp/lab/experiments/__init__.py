"""The papers' experiments, offline: `grove experiment NAME`. An experiment is a file of a paper's folder."""

"""The papers' experiments: `grove experiment NAME`. An experiment is one file in the folder of its paper."""

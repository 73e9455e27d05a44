"""Review: outcomes on which annotators disagree, their adjudication, and corrections of labels."""

"""Pages of reviewers, and the words that an annotator adds to an answer."""

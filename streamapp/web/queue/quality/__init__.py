"""Quality of answers: the annotator models of a store, and gold questions."""

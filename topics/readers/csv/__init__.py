"""CSV files: splitting their text into records, and detecting delimiter, header and kinds of columns."""

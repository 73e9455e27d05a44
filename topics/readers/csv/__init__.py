"""CSV files: how their text is cut into records, and how delimiter, header and kinds of columns are found."""

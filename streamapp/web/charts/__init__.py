"""Charts: curves and events as options of ECharts, as a table, and as a line of text for each value."""

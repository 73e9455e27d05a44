"""Layout: navigation, colours, tables, times and hints, which all pages share."""

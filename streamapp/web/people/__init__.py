"""People of the web application: a reader of their audit entries, and figures for the page /people."""

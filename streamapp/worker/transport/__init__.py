"""Transport: fetched records as runs and deliveries, and watches over the client of the group."""

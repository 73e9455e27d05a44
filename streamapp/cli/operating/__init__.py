"""Commands of operators: dead letters, models, journal, configuration, migration."""

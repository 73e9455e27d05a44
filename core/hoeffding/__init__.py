"""Split attempts of Hoeffding trees: merits of tests, the bound's decision, and when to try again."""

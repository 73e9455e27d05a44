"""Commands without a broker: prequential runs, pools, experiments, compiling."""

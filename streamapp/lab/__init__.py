"""The laboratory: experiments of the papers, pools, prequential runs, without worker and broker."""

"""The laboratory: experiments of papers, pools and prequential runs, without worker and broker."""

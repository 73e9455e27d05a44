"""Learning curve: the accuracy by the number of labels learned, its forecast, and advice on more labels."""

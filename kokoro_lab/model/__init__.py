"""The model: its files, its voices, its graphs and how they are run."""

"""The weights: what there is, how it is fetched and checked, where it lies, and whose voices it holds."""

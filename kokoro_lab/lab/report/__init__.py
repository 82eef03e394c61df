"""The report of a run: one page that opens offline, with the verdict at its top."""

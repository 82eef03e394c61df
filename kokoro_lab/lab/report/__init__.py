"""What a run says to a reader: one page that opens offline, with the verdict at its top."""

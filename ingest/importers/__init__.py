"""Files to bronze: one reader a format, one way to check, number and commit rows for all of them."""

"""The workers, built from their specifications, and the scripted model that works offline."""

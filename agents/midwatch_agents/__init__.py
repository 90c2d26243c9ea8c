"""The workers, built from their specification, and the scripted model that works offline."""

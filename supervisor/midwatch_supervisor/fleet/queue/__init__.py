"""The queue of a fleet: which tasks can continue, and how nodes get them."""

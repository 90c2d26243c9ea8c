"""Which tasks can go on, and how nodes get them."""

"""Which tasks can go on, and who is given them."""

"""What the journal says of an attempt, folded from its entries. Pure."""

"""What the journal says, told to a person or a program."""

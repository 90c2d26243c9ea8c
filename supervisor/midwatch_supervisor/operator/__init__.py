"""What a person may do."""

"""What a person may set: the configuration file and the task file, as frozen models."""

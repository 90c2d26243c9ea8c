"""What a person may configure: the configuration file and the task file, as frozen models."""

"""Notifications for people who are not watching: what is news, when it is sent, and how."""

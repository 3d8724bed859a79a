"""A server for trained models: many clients, one compute thread, answers equal to `jumok predict`."""

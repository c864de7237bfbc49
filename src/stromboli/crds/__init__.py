"""What is made of our kinds' declarations: definitions for an API server, admission, registrations."""

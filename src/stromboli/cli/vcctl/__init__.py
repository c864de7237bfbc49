"""Commands for people who use a cluster: jobs, queues and pods in the words and columns of vcctl, and a live view."""

"""Commands for users of a cluster: jobs, queues and pods in the words and columns of vcctl, and a live view."""

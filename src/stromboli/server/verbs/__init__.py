"""The verbs that write: create, update, patch and apply, with field ownership."""

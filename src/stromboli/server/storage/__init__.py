"""Storage: the object store, its journal, lists and watches."""

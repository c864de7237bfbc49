"""The plugins: one module or package each, none importing another."""

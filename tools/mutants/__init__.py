"""Mutation testing: break a line, run the tests that execute it, and list the breaks that no test notices."""

"""What plugin authors and tests build on: builders, scenario files, the conformance kit."""

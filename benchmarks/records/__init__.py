"""What records of schedulers show: a day in virtual time, half an hour on servers, damage, cost, explanations, ETA."""

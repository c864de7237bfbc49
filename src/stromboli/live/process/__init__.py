"""The process around scheduler and controllers: flags, leader election, web server and metrics."""

"""The controller of CronJobs: jobs made by a schedule.

:mod:`~stromboli.controllers.cron_jobs.due` says which slot is due, :mod:`~stromboli.controllers.cron_jobs.history`
what the status says of the jobs that are there, :mod:`~stromboli.controllers.cron_jobs.look` what is done about both.
"""

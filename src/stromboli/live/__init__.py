"""A scheduler on a live cluster: events in, cycles in a worker thread, decisions out; and the process around it.

:class:`~stromboli.live.scheduler.scheduler.LiveScheduler` is the runner:
``await LiveScheduler(client, options, ...).run()``.
The embedded cluster and ``stromboli serve`` use the same one.
"""

"""The controllers: from what objects say to what is to be done, as pure functions.

A reconciler looks at one object in a :class:`~stromboli.controllers.world.World` and answers an
:class:`~stromboli.controllers.changes.Outcome`: changes in the order in which they may be carried out.  Nothing here
knows an API server, a clock or a thread; the time is an argument.

=======================================  ===========================================================================
:mod:`~stromboli.controllers.jobs`        jobs: the state machine, policies, pods, PodGroup, volumes
:mod:`~stromboli.controllers.pod_groups`  PodGroups for pods that name none
:mod:`~stromboli.controllers.queues`      queues: open, closing, closed, down the hierarchy
:mod:`~stromboli.controllers.commands`    commands
:mod:`~stromboli.controllers.garbage`     finished jobs whose time is over
:mod:`~stromboli.controllers.topology`    members of hypernodes
:mod:`~stromboli.controllers.cron_jobs`   CronJobs: jobs made by a schedule
:mod:`~stromboli.controllers.discovery`  hypernodes from node labels, UFM or a file
:mod:`~stromboli.controllers.job_flows`   JobFlows and JobTemplates: jobs that wait for each other
=======================================  ===========================================================================
"""

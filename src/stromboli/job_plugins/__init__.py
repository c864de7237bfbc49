"""Job plugins: what a job's ``spec.plugins`` adds to its pods, and the further objects that it needs.

A plugin is a :class:`~stromboli.job_plugins.plugin.JobPlugin`: pure functions from a job to
:mod:`wanted objects <stromboli.job_plugins.wanted>` and to :mod:`edits <stromboli.job_plugins.edits>` of its pods.
:mod:`~stromboli.job_plugins.registry` has the table of all, built in or brought by others.  The controllers do what
plugins say (:mod:`stromboli.controllers.jobs.plugins`).
"""

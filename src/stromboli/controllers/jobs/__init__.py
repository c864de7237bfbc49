"""The controller of jobs.

:mod:`.requests` says what has happened and what policies want done, :mod:`.states` what that means in each phase,
:mod:`.look` does it, and :mod:`.reconcile` puts them together.
"""

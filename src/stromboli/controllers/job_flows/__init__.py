"""The controller of JobFlows: jobs that wait for each other.

=====================================================  ==============================================================
:mod:`~stromboli.controllers.job_flows.steps`          the job of each flow, and what it waits for
:mod:`~stromboli.controllers.job_flows.probes`         what pods have to answer before a job is made
:mod:`~stromboli.controllers.job_flows.status`         what the status says of the jobs
:mod:`~stromboli.controllers.job_flows.look`           what is done
:mod:`~stromboli.controllers.job_flows.job_templates`  JobTemplates: which jobs were made of each
=====================================================  ==============================================================
"""

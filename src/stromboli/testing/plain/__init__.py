"""The plain evaluation: where tasks are placed, computed node by node from the formulas, in scalar Python.

It is the judge of the engine: it shares no arithmetic with it, keeps no arrays and caches nothing, so what both agree
on is very likely right.  It is also the shortest description of what the engine computes.

=============  =====================================================================================
``world``      the nodes as the session's placements leave them, amounts added up pod by pod
``matching``   selectors, affinity terms, taints
``filters``    predicates: which nodes a task may use
``neighbours`` predicates and scores that look at the pods of other nodes
``scores``     nodeorder and binpack
``rules``      the plugins of a session as predicates and scores, third-party ones asked one node at a time
``placer``     the choice among the nodes
``cycle``      a whole cycle with that choice
=============  =====================================================================================
"""

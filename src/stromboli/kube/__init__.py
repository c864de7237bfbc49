"""The client of an API server.

====================================  ==============================================================================
:mod:`~stromboli.kube.access`         kubeconfig files and the environment of a pod: server address and identity
:mod:`~stromboli.kube.client`         the verbs: read, write, patch, bind, evict, delete, watch; rate and repetition
:mod:`~stromboli.kube.resources`      kinds, their paths and how objects are read
:mod:`~stromboli.kube.informer`       list and watch for good: a store and a stream of changes
:mod:`~stromboli.kube.recorder`       events on objects, told sparingly
:mod:`~stromboli.kube.lease`          leader election
====================================  ==============================================================================

Nothing here knows what scheduling is.  Everything runs in one event loop.
"""

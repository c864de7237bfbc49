"""HyperNodes made from what is known of the network: node labels, NVIDIA UFM, or a tree in a file.

Each source answers with the :class:`~stromboli.controllers.discovery.domains.Domain` values that there should be;
:func:`~stromboli.controllers.discovery.domains.changes` makes the HyperNodes of that source equal to them.
"""

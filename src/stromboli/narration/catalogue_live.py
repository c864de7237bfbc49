"""The lines of a scheduler on a live cluster, in addition to those of the reference: component -> (key, level, text).

Part of the table in :mod:`stromboli.narration.catalogue`, where levels and placeholders are explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROWS: Final[Mapping[str, tuple[tuple[str, int | str, str], ...]]] = {
    "live": (
        ("following_trouble", "W", "Following {kind}: {error}"),
        ("lister_refused", "W", "Plugins get no {resource}, which is asked for again each {seconds} s: {error}"),
        ("object_refused", "E", "{error}"),
        ("write_retried", 2, "Writing {what} failed and is tried again: {error}"),
        ("write_failed", "E", "Writing {what} failed: {error}"),
        ("bind_retried", 2, "Binding pod <{task}> to node {node} is tried again: {error}"),
        ("part_ended", "F", "The {part} has ended: {error}"),
        ("cycle_failed", "E", "Scheduling cycle failed: {error}"),
        ("decision_failed", "E", "What was decided on {what} is left: {error}"),
        ("read_anew", "W", "Everything is read anew: the state could not be counted {times} times in a row"),
        ("drift_found", "E", "State differs from the cluster: {kind} {name} {problem}"),
        ("duty_failed", "E", "What is done beside the cycles has failed, {duty}, {times} times so far: {error}{trace}"),
        ("audit_done", 3, "Compared state with the cluster: {objects} objects, {differences} differences"),
        ("audit_failed", "W", "Could not compare {what} with the cluster: {error}"),
        ("leading", 2, "successfully acquired lease {lease} as {identity}"),
        ("waiting_for_lease", 2, "attempting to acquire leader lease {lease} as {identity}"),
        ("lease_trouble", "W", "Lease {lease}: {error}"),
        ("lease_lost", "F", "leaderelection lost"),
        ("stopping", 2, "Stopping: {in_flight} writes in flight are finished first, {waiting} binds are handed back"),
        ("stopped", 2, "Stopped"),
        ("log_lines_lost", "W", "{count} log lines could not be written: {error}"),
        ("state_line", "W", "{line}"),
        ("dumped", "W", "Snapshot written to {path}"),
        ("dump_failed", "E", "Snapshot could not be written: {error}"),
        ("record_stopped", "E", "Recording has stopped and is tried again in {seconds} s: {error}"),
        ("signal_failed", "E", "What {signal} asks for failed: {error}"),
        ("controlled", 4, "Looked at {what}: {changes} changes"),
        ("control_retried", 2, "Looking at {what} is repeated: {error}"),
        ("control_given_up", "E", "Gave up on {what} after {tries} tries: {error}"),
        (
            "reservation_unproven",
            "W",
            "Reservation of Task <{task}> on node <{node}> does not count and is removed: its annotations {why}",
        ),
        ("reservation_key_made", 2, "A new key that proves reservations stands in Secret {secret}"),
        ("reservation_key_trouble", "E", "The key that proves reservations, Secret {secret}: {error}; {then}"),
        ("shadow_started", "W", "Deciding as a shadow: nothing is written; differences are told here and on /shadow"),
        ("shadow_differs", "W", "{what}: pod {pod}: there <{there}>, here <{here}>; why: {why}"),
        ("shadow_leaves_out", "W", "The shadow leaves something out of its plans, and may differ therefore: {text}"),
        ("shadow_summary", "W", "Shadow: {plans} plans; of the other's decisions: {counts}"),
        ("webhooks_served", 0, "Webhooks are served on port {port}: {paths}"),
        ("certificate_step", 0, "A step of the certificate in Secret {secret} has been taken"),
        (
            "certificate_unusable",
            "W",
            "Secret {secret} holds no certificate and key that API servers would accept, and is written anew",
        ),
        ("certificate_shown", 0, "Another certificate is shown to API servers from now on"),
        ("certificate_trouble", "E", "Certificate and webhook configurations are left as they are: {error}"),
        ("authorities_written", 0, "The authorities in webhook configuration {configuration} have been written"),
        (
            "configuration_missing",
            "W",
            "{path} is served, and no API server asks it: there is no webhook configuration {configuration}",
        ),
        (
            "path_not_served",
            "E",
            "{path} is asked by webhook configuration {configuration} and not served: add it to --enabled-admission",
        ),
        ("review_failed", "E", "A review of {path} has failed: {error}"),
        ("admission_file_read", 0, "Admission file {file}: {groups} resource groups"),
        ("admission_file_refused", "E", "Admission file {file} is not used, what was read before stays: {error}"),
        ("not_served", 2, "The API server has no {resource}; they are not looked at"),
    ),
}

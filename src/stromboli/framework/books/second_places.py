"""In the reference's way: tasks with room that a gang action has reserved wait on, and are placed a second time.

The reference's list of what waits in a sub-job still has such a task, so that allocate takes it up once more.  It
leaves its reservation on the first node, which thus stays taken, unless it comes to that very node: then both places
are lost.  Without compat mode the list is empty.
"""

from __future__ import annotations

from stromboli.model.job import PENDING, PIPELINED, Job
from stromboli.model.status import TaskStatus
from stromboli.model.task import Placement, Task


class SecondPlaces:
    """The tasks that wait although room is reserved for them: ``rows`` has by uid the row where that is.

    ``counted`` are those that have left their reservation, and still count as pipelined in their sub-job.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.counted: set[str] = set()

    def waits(self, task: Task) -> bool:
        """Whether ``task`` is to be placed: it is Pending, or noted here."""
        return task.status is PENDING or (task.status is PIPELINED and task.uid in self.rows)

    def take_up(self, job: Job, task: Task, row: int, status: TaskStatus) -> bool:
        """``task`` leaves its reservation behind to be placed on ``row``; False if it lies there, and is to go."""
        if task.status is PIPELINED:
            task.last = Placement(
                task.status, task.node_name, task.eviction_occurred
            )  # the messages know of the first place only
            job.move((task,), PENDING)
            task.node_name = ""
            self.counted.add(task.uid)
        if status is PIPELINED:
            self.counted.discard(task.uid)
        if self.rows[task.uid] != row:
            return True
        del self.rows[task.uid]
        return False

"""Where the processes of real pods run: namespaces of Linux that take no privileges.

One holder keeps a user namespace, a network of loopback alone and a PID namespace for all pods.  It lives as long as
its standard input is open, so that the kernel ends every process with this one, however this one ends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from stromboli.errors import CannotServe

UNPRIVILEGED: Final = 65534
"""The uid of the user ``nobody``, which pods run as when this process runs as root."""
AS_NOBODY: Final = ("setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups")
TOOLS: Final = ("setpriv", "unshare", "nsenter", "prlimit", "chroot", "mount")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDS: Final = "--pods real takes Linux with user namespaces open to unprivileged users"
_LOOPBACK_UP: Final = (
    "import fcntl, socket, struct; s = socket.socket(); "
    "fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0x49))"  # SIOCSIFFLAGS: up, loopback, running
)
_HOLD: Final = f"""\
read pid rest < /proc/self/stat
ip link set lo up 2>/dev/null || python3 -c "{_LOOPBACK_UP}" || exit 1
echo "$pid"
exec cat > /dev/null
"""


class Sandbox:
    """The holder and the folder of all pods; ends every process when it is left."""

    def __init__(self) -> None:
        self.folder = Path()
        self._holder: asyncio.subprocess.Process | None = None
        self._pid = ""

    async def __aenter__(self) -> Sandbox:
        """Start the holder.  Raises CannotServe where the machine does not allow it."""
        if missing := [tool for tool in TOOLS if shutil.which(tool, path=_PATH) is None]:
            raise CannotServe(f"{_NEEDS}; this machine lacks {', '.join(missing)}")
        self.folder = Path(tempfile.mkdtemp(prefix="stromboli-pods-"))
        self.folder.chmod(0o711)
        flags = ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")
        pipe = asyncio.subprocess.PIPE
        try:
            self._holder = await self._spawn("unshare", *flags, "sh", "-c", _HOLD, stdin=pipe, stdout=pipe, stderr=pipe)
            said = self._holder.stdout
            self._pid = (await said.readline()).decode().strip() if said else ""
            if not self._pid.isdecimal():
                _, problem = await self._holder.communicate()
                raise CannotServe(f"{_NEEDS}; here: {problem.decode(errors='replace').strip()[-400:]}")
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what runs and remove what it left."""
        if self._holder is not None:
            await self._holder.communicate(b"")  # closes its input
        shutil.rmtree(self.folder, ignore_errors=True)

    async def start(self, script: Path) -> asyncio.subprocess.Process:
        """A shell in mount, name and PID namespaces of its own; what it writes comes in one stream."""
        join = ("nsenter", "-t", self._pid, "-U", "-n", "-p", "--preserve-credentials")
        apart = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child")
        streams = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE}
        return await self._spawn(*join, *apart, "sh", str(script), **streams, stderr=asyncio.subprocess.STDOUT)

    async def _spawn(self, *command: str, **streams: Any) -> asyncio.subprocess.Process:
        words = (*AS_NOBODY, *command) if os.geteuid() == 0 else command
        where: dict[str, Any] = {"cwd": "/", "env": {"PATH": _PATH}, "start_new_session": True}
        return await asyncio.create_subprocess_exec(words[0], *words[1:], **where, **streams)


def give(path: Path) -> None:
    """Make ``path`` the pods' own, where this process is root's."""
    if os.geteuid() == 0:
        os.chown(path, UNPRIVILEGED, UNPRIVILEGED)

"""Network of a cluster under test: every connection to a node goes through a proxy, which can harm it.

The proxies run in one thread. They find the node that opened a connection by the process that has its socket,
so that a node can be cut off in both directions: nothing reaches it, and nothing comes from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

HOST: Final = "127.0.0.1"
CHUNK: Final = 1 << 16

Harm = Literal["silent", "reset"]
"""What happens to the bytes of a node that is cut off: they wait, or their connections are reset."""


@dataclass(eq=False)
class Connection:
    """A connection between two sockets of the proxy."""

    nodes: frozenset[int]  # the nodes at its ends, as far as they are known; a client is none
    port: int  # of the end that opened it
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    is_dead: bool = False  # its server's end is closed, and its client's end does not learn of it

    def reset(self) -> None:
        for writer in (self.client, self.server):
            writer.transport.abort()


Tap = Callable[[Connection, bool, bytes], object]
"""Gets the bytes of a connection before they pass, and whether the client has sent them."""


class Network:
    """Proxies in front of the nodes, until the block ends. The methods may be called from any thread."""

    def __init__(self, group_of: Callable[[int], int | None], tap: Tap | None = None) -> None:
        """`group_of`: returns the process group of a node, None if it does not run.

        `tap` is called in the thread of the proxies.
        """
        self._group_of = group_of
        self._tap = tap
        self._nodes: set[int] = set()
        self._harmed: dict[int, Harm] = {}
        self._delays: dict[int, float] = {}
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def through(self, node: int, ports: tuple[int, int]) -> tuple[int, int]:
        """Return ports that lead to the ports of a node (`EmbeddedCluster(through=...)`)."""
        self._nodes.add(node)
        first, second = (self._do(self._listen(node, port)) for port in ports)
        return first, second

    def cut_off(self, node: int, harm: Harm) -> None:
        """Cut a node off from clients and from other nodes, until `heal`."""
        self._do(self._cut_off(node, harm))

    def slow_down(self, node: int, seconds: float) -> None:
        """Delay the bytes of a node in each direction, until `heal`."""
        self._do(self._slow_down(node, seconds))

    def leave_half_open(self, node: int) -> None:
        """End the connections of a node at its end only: the other ends wait for it. New ones work."""
        self._do(self._leave_half_open(node))

    def heal(self) -> None:
        """Let everything pass again; connections that are half open stay so."""
        self._do(self._heal())

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self, node: int, port: int) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(node, port, reader, writer)

        server = await asyncio.start_server(accept, HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(
        self, node: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        source = int(writer.get_extra_info("peername")[1])
        nodes = frozenset({node})
        if self._harmed or self._delays:
            nodes |= self._owners().get(source, frozenset())
        if "reset" in {self._harmed.get(end) for end in nodes}:
            writer.transport.abort()
            return
        try:
            from_server, server = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(nodes, source, writer, server)
        self._connections.add(connection)
        self._let_flow(connection)
        try:
            await asyncio.gather(
                self._pump(connection, reader, server), self._pump(connection, from_server, writer)
            )
        finally:
            self._connections.discard(connection)
            connection.reset()

    async def _pump(
        self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copy bytes until one end closes; then the other end is closed too, unless it is half open."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await connection.flows.wait()
                if self._tap is not None:
                    self._tap(connection, writer is connection.server, data)
                if delay := max(self._delays.get(node, 0.0) for node in connection.nodes):
                    await asyncio.sleep(delay)
                writer.write(data)
                await writer.drain()
        await connection.flows.wait()
        if not connection.is_dead:
            writer.transport.abort() if connection.nodes & self._harmed.keys() else writer.close()

    async def _cut_off(self, node: int, harm: Harm) -> None:
        self._harmed[node] = harm
        for connection in self._connections_of(node):
            self._let_flow(connection)
            if harm == "reset":
                connection.reset()

    async def _slow_down(self, node: int, seconds: float) -> None:
        self._connections_of(node)  # notes the node at the ends that it opened
        self._delays[node] = seconds

    async def _leave_half_open(self, node: int) -> None:
        for connection in self._connections_of(node):
            connection.is_dead = True
            connection.server.transport.abort()

    async def _heal(self) -> None:
        self._harmed.clear()
        self._delays.clear()
        for connection in self._connections:
            self._let_flow(connection)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        await self._heal()
        for connection in list(self._connections):
            connection.reset()
        remaining = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)

    def _connections_of(self, node: int) -> list[Connection]:
        """Return the connections to and from a node."""
        owners = self._owners()
        for connection in self._connections:
            connection.nodes |= owners.get(connection.port, frozenset())
        return [connection for connection in self._connections if node in connection.nodes]

    def _let_flow(self, connection: Connection) -> None:
        if connection.nodes & self._harmed.keys():
            connection.flows.clear()
        else:
            connection.flows.set()

    def _owners(self) -> dict[int, frozenset[int]]:
        """Return, by port, the nodes that have opened connections.

        A node has thousands of files, so this is looked up while a node is harmed, not for each connection.
        """
        ports = ports_of_inodes()
        groups = {node: self._group_of(node) for node in self._nodes}
        return {
            ports[inode]: frozenset({node})
            for node, group in groups.items()
            if group is not None
            for inode in sockets_of(group)
            if inode in ports
        }


def ports_of_inodes() -> dict[str, int]:
    """Return the local port of each connected loopback socket, by its inode."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {
        row[9]: int(row[1].partition(":")[2], 16)
        for row in rows
        if row[1].startswith("0100007F:") and row[2] != "00000000:0000"
    }


def sockets_of(group: int) -> set[str]:
    """Return the inodes of the sockets of a process group's leader and its children."""
    inodes = set()
    for process in (group, *children(group)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    place = str(descriptor.readlink())
                    if place.startswith("socket:["):
                        inodes.add(place[len("socket:[") : -1])
    return inodes


def children(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []

"""Attacks through sockets: to the harness, to the machine, to the world, to other workspaces."""

import socket
import threading
import time
from contextlib import suppress

from redteam.arena import Scene
from redteam.attack import QUICK, Attack
from sandmle.types import ExecResult

# families and protocols that no script needs; the numbers are the kernel's
_ODD_SOCKETS = """
    import socket
    odd = {"netlink": (16, 3, 0), "netlink audit": (16, 3, 9), "netlink netfilter": (16, 3, 12),
           "packet": (17, 3, 768), "packet datagram": (17, 2, 768), "key": (15, 3, 2),
           "alg": (38, 5, 0), "vsock": (40, 1, 0), "vsock datagram": (40, 2, 0),
           "bluetooth": (31, 3, 1), "can": (29, 3, 1), "tipc": (30, 1, 0), "rds": (21, 5, 0),
           "smc": (43, 1, 0), "xdp": (44, 3, 0), "qrtr": (42, 2, 0), "kcm": (41, 2, 0),
           "x25": (9, 5, 0), "appletalk": (5, 2, 0), "ax25": (3, 5, 0), "raw": (2, 3, 1),
           "raw6": (10, 3, 58), "packet of old": (2, 10, 3)}
    for name, (family, kind, protocol) in odd.items():
        attempt(name, lambda: socket.socket(family, kind, protocol))
        attempt(f"pair of {name}", lambda: socket.socketpair(family, kind, protocol))
"""


def _listens(scene: Scene) -> ExecResult:
    """The harness (or a neighbour) connects to where a program listens."""
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    reached: list[str] = []
    done = threading.Event()

    def knock() -> None:
        while not done.is_set():
            for name, family, address in (
                ("tcp", socket.AF_INET, ("127.0.0.1", port)),
                ("abstract", socket.AF_UNIX, f"\0{scene.mark}"),
            ):
                with socket.socket(family) as one, suppress(OSError):
                    one.settimeout(0.5)
                    one.connect(address)
                    reached.append(name)
            time.sleep(0.05)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        result = scene.run(f"""
            import socket
            kept = []
            def listen(family, address):
                one = socket.socket(family)
                one.bind(address)
                one.listen(4)
                kept.append(one)
            anyway(
                lambda: listen(socket.AF_INET, ("127.0.0.1", {port})),
                lambda: listen(socket.AF_UNIX, "\\0" + HOST["mark"]),
            )
            time.sleep(1)
        """)
    finally:
        done.set()
        thread.join()
    scene.expect(not reached, f"the harness reached a program by {sorted(set(reached))}")
    return result


ATTACKS = [
    Attack(
        name="tcp-to-the-harness",
        tries="Connects with the helper over every spelling and flavour of TCP to loopback.",
        must="No connection leaves the sandbox.",
        needs="net",
        code="""
            import socket
            port = HOST["doors"]["ports"]["tcp"]
            def reach(family, kind, protocol, address):
                one = socket.socket(family, kind, protocol)
                one.settimeout(1)
                one.connect(address)
                return one.recv(99)
            for name, protocol in {"tcp": 6, "default": 0, "mptcp": 262, "smc": 256}.items():
                attempt(name, lambda: reach(2, 1, protocol, ("127.0.0.1", port)))
            for address in ("127.1.2.3", "0.0.0.0", "localhost"):
                attempt(address, lambda: reach(2, 1, 0, (address, port)))
            attempt("mapped", lambda: reach(10, 1, 0, ("::ffff:127.0.0.1", port)))
            port6 = HOST["doors"]["ports"].get("tcp6", port)
            attempt("tcp6", lambda: reach(10, 1, 0, ("::1", port6)))
            def fast():
                one = socket.socket()
                one.settimeout(1)
                one.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))
                return one.recv(99)
            attempt("fast open", fast)
            def spoken():
                one = socket.socket()
                one.settimeout(1)
                one.bind(("127.0.0.1", 0))
                one.connect(("127.0.0.1", port))
                return one.recv(99)
            attempt("bound first", spoken)
        """,
    ),
    Attack(
        name="udp-to-the-harness",
        tries="Sends the helper a datagram and waits for its answer.",
        must="No datagram leaves the sandbox.",
        needs="net",
        code="""
            import socket
            port = HOST["doors"]["ports"]["udp"]
            def ask(protocol):
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, protocol)
                one.settimeout(0.5)
                one.sendto(b"x", ("127.0.0.1", port))
                return one.recv(99)
            for protocol in (0, 17, 136):
                attempt(f"udp {protocol}", lambda: ask(protocol))
        """,
    ),
    Attack(
        name="out-into-the-world",
        tries="Resolves a name and routes packets to public and to link-local addresses.",
        must="There is no route out, and finding that out takes no time.",
        code="""
            import socket
            def route(family, address):
                one = socket.socket(family, socket.SOCK_DGRAM)
                one.connect((address, 53))
                return one.getsockname()
            for address in ("192.0.2.1", "8.8.8.8", "169.254.169.254", "10.0.0.1", "172.17.0.1",
                            "224.0.0.1", "255.255.255.255"):
                attempt(address, lambda: route(socket.AF_INET, address))
            for address in ("2001:db8::1", "ff02::1", "fe80::1"):
                attempt(address, lambda: route(socket.AF_INET6, address))
            started = time.monotonic()
            attempt("name", lambda: socket.getaddrinfo("example.com", 443))
            if time.monotonic() - started > 4:
                print("GOT stuck for", time.monotonic() - started)
        """,
    ),
    Attack(
        name="abstract-socket",
        tries="Connects with the helper over abstract Unix sockets, and sends to one unconnected.",
        must="Abstract sockets outside are out of reach.",
        needs="net",
        code="""
            import socket
            name = HOST["doors"]["abstract"]
            def stream():
                one = socket.socket(socket.AF_UNIX)
                one.connect(name)
                return one.recv(99)
            attempt("stream", stream)
            def datagram(connect):
                one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                one.bind("\\0" + HOST["mark"])
                one.settimeout(0.5)
                if connect:
                    one.connect(name + "-d")
                    one.send(b"x")
                else:
                    one.sendto(b"x", name + "-d")
                return one.recv(99)
            attempt("datagram", lambda: datagram(True))
            attempt("unconnected", lambda: datagram(False))
        """,
    ),
    Attack(
        name="socket-in-a-folder",
        tries="Connects with the helper over Unix sockets in the file system, by several ways.",
        must="A daemon's socket on the host is out of reach.",
        needs="sockets",
        code="""
            import socket
            def stream(path, kind=socket.SOCK_STREAM):
                one = socket.socket(socket.AF_UNIX, kind)
                one.settimeout(0.5)
                one.connect(path)
                return one.recv(99)
            attempt("stream", lambda: stream(HOST["doors"]["stream"]))
            def by_handle():
                handle = os.open(HOST["doors"]["stream"], os.O_PATH)
                return stream(f"/proc/self/fd/{handle}")
            attempt("by its handle", by_handle)
            def by_link():
                os.symlink(HOST["doors"]["stream"], "link.sock")
                return stream("link.sock")
            attempt("by a link", by_link)
            def moved():
                os.chdir(os.path.dirname(HOST["doors"]["stream"]))
                return stream("stream.sock")
            attempt("from its folder", moved)
        """,
    ),
    Attack(
        name="datagram-in-a-folder",
        tries="Sends the helper datagrams over a Unix socket in the file system, unconnected too.",
        must="Nothing can be sent to a daemon on the host.",
        needs="sockets",
        code="""
            import socket
            path = HOST["doors"]["datagram"]
            one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            attempt("sendto", lambda: one.sendto(b"x", path))
            attempt("sendmsg", lambda: one.sendmsg([b"x"], [], 0, path))
            def connected():
                one.connect(path)
                return one.send(b"x")
            attempt("connected", connected)
            for path in ("/dev/log", "/run/systemd/notify", "/run/systemd/journal/socket"):
                attempt(path, lambda: one.connect(path))
        """,
    ),
    Attack(
        name="daemons-of-the-machine",
        tries="Connects with the sockets of container engines, of D-Bus, of databases.",
        must="None of them answers.",
        code="""
            import socket
            paths = {"/var/run/docker.sock", "/run/containerd/containerd.sock",
                     "/run/dbus/system_bus_socket", "/run/podman/podman.sock",
                     "/var/run/postgresql/.s.PGSQL.5432", "/tmp/.X11-unix/X0"}
            for path in paths:
                def connect():
                    one = socket.socket(socket.AF_UNIX)
                    one.settimeout(0.2)
                    one.connect(path)
                attempt(path, connect)
        """,
    ),
    Attack(
        name="odd-sockets",
        tries="Makes sockets of netlink, packet, vsock, crypto and fifteen more families.",
        must="Only the families that scripts need exist: vsock reaches past network namespaces.",
        needs="seccomp",
        code=_ODD_SOCKETS,
    ),
    Attack(
        name="listening",
        tries="Listens on loopback and on an abstract socket for whoever may connect.",
        must="Nobody outside can be lured into the sandbox.",
        needs="sockets",
        code=_listens,
        limits=QUICK,
    ),
    Attack(
        name="network-settings",
        tries="Adds addresses and routes and changes settings of the network.",
        must="The network is as it was made.",
        code="""
            import fcntl, socket, struct
            def ioctl(number, data):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                    fcntl.ioctl(one, number, data)
            address = struct.pack("16sH2s4s8s", b"lo", 2, b"", socket.inet_aton("10.9.8.7"), b"")
            attempt("address", lambda: ioctl(0x8916, address))
            attempt("down", lambda: ioctl(0x8914, struct.pack("16sH14s", b"lo", 0, b"")))
            attempt("bridge", lambda: ioctl(0x89A0, b"redteam-br0".ljust(32, b"\\0")))
            attempt("forward", lambda: open("/proc/sys/net/ipv4/ip_forward", "w"))
            attempt("tun", lambda: open("/dev/net/tun", "r+b", buffering=0))
        """,
    ),
]

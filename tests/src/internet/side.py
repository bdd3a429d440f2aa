"""One side of the world: its sockets, who comes to them, and when there is nothing more to tell."""

import functools
import os
import select
import selectors
import socket
import sys
import threading
import time

from packets import Packets
from records import place
from visits import Visit

IP_FREEBIND, IPV6_FREEBIND = 15, 78
# Nothing is about to happen when nothing has happened for this long. A side that never rests is not waited
# for.
REST, LONGEST_UNREST = 0.05, 5
# More at the same time are turned away.
MOST_VISITS = 1000


class Side:
    """Takes connections and datagrams until stdin is closed. Whatever else comes in on stdin asks whether all
    is written down, and is answered when it is."""

    def __init__(self, records):
        self.records = records
        self._selector = selectors.DefaultSelector()
        self._visits = set()
        self._packets = None
        self._asked_at = None

    def count_packets(self, devices):
        self._packets = Packets(devices)
        self._selector.register(self._packets.socket, selectors.EVENT_READ, self._packets.take)

    def tcp(self, address, port, service):
        """`service` has the whole of each visit, in a thread of its own."""
        listener = bound(socket.SOCK_STREAM, address, port)
        listener.listen(512)
        accept = functools.partial(self._accept, listener, service)
        self._selector.register(listener, selectors.EVENT_READ, accept)

    def udp(self, address, port, service):
        """`service` gives the answers to a message, and can write it down by the function it is given."""
        own = bound(socket.SOCK_DGRAM, address, port)
        receive = functools.partial(self._receive, own, service)
        self._selector.register(own, selectors.EVENT_READ, receive)

    def run(self):
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, self._hear)
        is_open = True
        while is_open:
            events = self._selector.select(None if self._asked_at is None else REST)
            # Only stdin has an end.
            is_open = all(key.data() is not False for key, _ in events)
            if self._asked_at is not None:
                self._answer(is_busy=bool(events))

    def _accept(self, listener, service):
        try:
            connection, source = listener.accept()
        except OSError:
            return
        visit = Visit(connection, self.records)
        visit.note("connection", **{"from": place(source), "to": place(connection.getsockname())})
        if len(self._visits) >= MOST_VISITS:
            visit.end()
            return
        self._visits.add(visit)
        threading.Thread(target=self._serve, args=(visit, service), daemon=True).start()

    def _serve(self, visit, service):
        try:
            service(visit)
        except (OSError, ValueError):
            # Whoever came left early, or talked nonsense. What was understood is written down.
            pass
        finally:
            self._visits.discard(visit)
            visit.end()

    def _receive(self, own, service):
        try:
            message, source = own.recvfrom(64 << 10)
        except BlockingIOError:
            return

        def note():
            addresses = {"from": place(source), "to": place(own.getsockname())}
            self.records.write("datagram", hex=message.hex(), **addresses)

        for answer in service(message, note):
            try:
                own.sendto(answer, source)
            except OSError:
                # Whoever asked is gone.
                pass

    def _hear(self):
        if not os.read(sys.stdin.fileno(), 64):
            return False
        self._asked_at = time.monotonic()
        return True

    def _answer(self, is_busy):
        now = time.monotonic()
        is_resting = not is_busy and now - self.records.last > REST and not self._has_unread()
        if is_resting or now - self._asked_at > LONGEST_UNREST:
            self._asked_at = None
            if self._packets:
                self.records.write("packets", flows=self._packets.flows())
            say("settled")

    def _has_unread(self):
        """Whether somebody has said something that nobody has read yet."""
        poll = select.poll()
        for visit in list(self._visits):
            if (number := visit.socket.fileno()) >= 0:
                poll.register(number, select.POLLIN)
        return bool(poll.poll(0))


def bound(kind, address, port):
    """A socket at an address that may be any of a whole network that is routed here."""
    is_old = ":" not in address
    own = socket.socket(socket.AF_INET if is_old else socket.AF_INET6, kind)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_old:
        own.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
    else:
        own.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    own.setblocking(False)
    own.bind((address, port))
    return own


def say(word):
    """Tells the test."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()

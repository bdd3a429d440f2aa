"""One accepted connection each: what came is written down, what is said is counted."""

import socket
import struct
import time

# How long anybody may say nothing, and how long a greeting by TLS may take.
PATIENCE, GREETING = 120, 5
# What is kept of the first bytes, and the longest head, line or body that is read.
FIRST, LONGEST_HEAD, LONGEST_BODY = 512, 64 << 10, 64 << 20


class Visit:
    """A connection and the number that it has in the records."""

    def __init__(self, connection, records):
        self.socket = connection
        self.socket.settimeout(PATIENCE)
        self.server = connection.getsockname()[0]
        self._records = records
        self._number = records.number()
        self._rest = b""
        self._received = self._sent = 0
        self._has_begun = False

    def note(self, seen, **fields):
        self._records.write(seen, id=self._number, **fields)

    def end(self):
        """Says how much went each way, and closes."""
        self.note("end", received=self._received, sent=self._sent)
        self.socket.close()

    def some(self):
        """The next bytes; none at the end."""
        if self._rest:
            got, self._rest = self._rest, b""
            return got
        got = self.socket.recv(64 << 10)
        if got and not self._has_begun:
            self._first(got)
        self._received += len(got)
        return got

    def until(self, mark):
        """All up to a mark, and the mark; nothing at the end."""
        found = b""
        while mark not in found:
            got = self.some()
            if not got or len(found) > LONGEST_HEAD:
                return b""
            found += got
        found, mark, self._rest = found.partition(mark)
        return found + mark

    def exactly(self, count):
        """This many bytes, or fewer at the end."""
        parts, missing = [], min(count, LONGEST_BODY)
        while missing:
            got = self.some()
            if not got:
                break
            self._rest = got[missing:]
            parts.append(got[:missing])
            missing -= len(parts[-1])
        return b"".join(parts)

    def say(self, words):
        self.socket.sendall(words)
        self._sent += len(words)

    def fill(self, count):
        """Says this many bytes that mean nothing."""
        part = b"x" * (64 << 10)
        while count > 0:
            self.say(part[:count])
            count -= len(part)

    def greeting(self):
        """Looks at a greeting by TLS without taking it, writes down whom it names, and gives the bytes."""
        deadline = time.monotonic() + GREETING
        hello = self.socket.recv(32 << 10, socket.MSG_PEEK)
        while hello[:1] == b"\x16" and not is_whole(hello) and time.monotonic() < deadline:
            time.sleep(0.005)
            hello = self.socket.recv(32 << 10, socket.MSG_PEEK)
        if hello:
            self._first(hello)
            self.note("greeting", sni=server_name(hello))
        return hello

    def _first(self, got):
        self._has_begun = True
        self.note("first", hex=got[:FIRST].hex())


def is_whole(hello):
    return len(hello) >= 5 and len(hello) >= 5 + int.from_bytes(hello[3:5], "big")


def server_name(hello):
    """The name in a ClientHello; none if there is none."""
    try:
        if hello[0] != 22 or hello[5] != 1:
            return None
        # Behind the version and the random bytes come the session, the ciphers and the compressions.
        at = 5 + 4 + 2 + 32
        at += 1 + hello[at]
        at += 2 + int.from_bytes(hello[at : at + 2], "big")
        at += 1 + hello[at]
        end, at = at + 2 + int.from_bytes(hello[at : at + 2], "big"), at + 2
        while at + 4 <= end:
            kind, length = struct.unpack_from("!HH", hello, at)
            if kind == 0:
                (size,) = struct.unpack_from("!H", hello, at + 7)
                return hello[at + 9 : at + 9 + size].decode("latin-1")
            at += 4 + length
    except (IndexError, struct.error):
        pass
    return None

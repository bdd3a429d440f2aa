"""The resolver of the world: answers from a table, and answers badly where the table says so."""

import collections
import ipaddress
import struct

KINDS = {1: "A", 5: "CNAME", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 64: "SVCB", 65: "HTTPS"}
NUMBERS = {name: number for number, name in KINDS.items()}
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
# A response to a question that wished for recursion, from somebody who does that.
RESPONSE, TRUNCATED = 0x8180, 0x0200
# No chain of aliases is longer.
LONGEST_CHAIN = 8


class Names:
    """A table of names, as the test gave it."""

    def __init__(self, table, records):
        self._table = {name.lower(): entry for name, entry in table.items()}
        self._records = records
        self._asked = collections.Counter()

    def answer(self, message, over, server):
        """The messages that answer one; raises ValueError if it is no question."""
        number, name, kind, question = parse(message)
        self._records.write("question", name=name, kind=KINDS.get(kind, str(kind)), over=over, server=server)
        behaviour = (self._entry(name) or {}).get("behaviour")
        turn = self._asked[name, kind]
        self._asked[name, kind] += 1
        if behaviour == "timeout":
            return []
        if behaviour == "servfail":
            return [reply(number, question, SERVER_FAILURE)]
        if behaviour == "nxdomain":
            return [reply(number, question, NO_SUCH_NAME)]
        if behaviour == "truncate" and over == "udp":
            return [reply(number, question, TRUNCATED)]
        code, found = self._find(name, kind)
        if behaviour == "flip" and found:
            found = [found[turn % len(found)]]
        if behaviour == "lie":
            other = encode("somebody.else.test") + struct.pack("!HH", kind, 1)
            return [reply(number ^ 0x5555, question, code, found), reply(number, other, code, found)]
        return [reply(number, question, code, found)]

    def datagrams(self, server):
        """The service on UDP."""

        def service(message, note):
            try:
                return self.answer(message, "udp", server)
            except ValueError:
                note()
                return []

        return service

    def visit(self, visit):
        """The service on TCP, where each message comes behind its length."""
        while head := visit.exactly(2):
            message = visit.exactly(int.from_bytes(head, "big"))
            for answer in self.answer(message, "tcp", visit.server):
                visit.say(len(answer).to_bytes(2, "big") + answer)

    def _entry(self, name):
        found, rest = self._table.get(name), name
        while found is None and rest:
            rest = rest.partition(".")[2]
            found = self._table.get("*." + rest)
        return found

    def _find(self, name, kind):
        found = []
        for _ in range(LONGEST_CHAIN):
            entry = self._entry(name)
            if entry is None:
                return NO_SUCH_NAME, found
            alias = entry.get("CNAME")
            if not alias:
                addresses = entry.get(KINDS[kind], []) if kind in (NUMBERS["A"], NUMBERS["AAAA"]) else []
                found += [resource(name, kind, ipaddress.ip_address(it).packed, entry) for it in addresses]
                return NO_ERROR, found
            found.append(resource(name, NUMBERS["CNAME"], encode(alias), entry))
            name = alias.lower()
        return NO_ERROR, found


def parse(message):
    """The number, the name, the kind and the bytes of a question."""
    try:
        number, flags, count = struct.unpack_from("!3H", message)
        at, labels = 12, []
        while message[at]:
            length = message[at]
            labels.append(message[at + 1 : at + 1 + length].decode("latin-1"))
            at += 1 + length
        (kind,) = struct.unpack_from("!H", message, at + 1)
    except (IndexError, struct.error) as error:
        raise ValueError("cut off") from error
    if flags & 0x8000 or count != 1:
        raise ValueError("no question")
    return number, ".".join(labels).lower(), kind, message[12 : at + 5]


def encode(name):
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def resource(name, kind, data, entry):
    return encode(name) + struct.pack("!HHIH", kind, 1, entry.get("TTL", 60), len(data)) + data


def reply(number, question, flags, found=()):
    return struct.pack("!6H", number, RESPONSE | flags, 1, len(found), 0, 0) + question + b"".join(found)

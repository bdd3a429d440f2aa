"""Counts the packets that come from the host, whatever they are and whether anybody listens."""

import collections
import ipaddress
import socket

ALL, ARP, IPV4, IPV6 = 0x0003, 0x0806, 0x0800, 0x86DD
PROTOCOLS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}
# What a kernel with nothing to do sends to learn who else is on its wire: who listens to which group, who is
# a router, who has which address.
NOISE = {130, 131, 132, 133, 134, 135, 136, 137, 143}
# Enough for every header that is looked at.
HEAD = 128
# Bursts wait here until they are counted.
ROOM = 16 << 20


class Packets:
    """Everything that arrives on these devices, by protocol and addresses."""

    def __init__(self, devices):
        self._devices = devices
        self._counts = collections.Counter()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM)
        self.socket.setblocking(False)

    def take(self):
        """Counts what waits."""
        while True:
            try:
                packet, (device, protocol, direction, *_) = self.socket.recvfrom(HEAD)
            except BlockingIOError:
                return
            if device in self._devices and direction != socket.PACKET_OUTGOING:
                flow = describe(protocol, packet)
                if flow:
                    self._counts[flow] += 1

    def flows(self):
        """All that came so far."""
        names = ("protocol", "from", "to", "port")
        return [{**dict(zip(names, flow)), "count": count} for flow, count in self._counts.items()]


def describe(protocol, packet):
    """The protocol, the addresses and the port that a packet goes to; none for noise."""
    try:
        if protocol == ARP:
            return None
        if protocol == IPV4:
            number, at = packet[9], (packet[0] & 15) * 4
            source, target = packet[12:16], packet[16:20]
            # Only the first of several parts says which port.
            is_first = not int.from_bytes(packet[6:8], "big") & 0x1FFF
        elif protocol == IPV6:
            number, at, is_first = packet[6], 40, True
            source, target = packet[8:24], packet[24:40]
            while number == 0:
                number, at = packet[at], at + 8 + packet[at + 1] * 8
        else:
            return f"ethernet-{protocol:#06x}", "", "", None
        if number == 58 and packet[at] in NOISE:
            return None
        has_port = number in (6, 17, 132) and is_first
        port = int.from_bytes(packet[at + 2 : at + 4], "big") if has_port else None
        source, target = ipaddress.ip_address(source), ipaddress.ip_address(target)
        return PROTOCOLS.get(number, f"protocol-{number}"), str(source), str(target), port
    except (IndexError, ValueError):
        return f"broken-{protocol:#06x}", "", "", None

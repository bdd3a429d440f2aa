"""The world of one test. `world.py internet DIRECTORY` is everybody out there, `world.py host DIRECTORY` is
what the host itself has running. Each begins when it is told to on stdin, and ends when that is closed."""

import json
import os
import shutil
import signal
import sys
import threading

import repository
import services
from names import Names
from records import Records
from side import Side, say

# No test takes longer.
LIFE = 1800
# Many visits at a time need many stacks, none of them a large one.
STACK = 256 << 10

SITES = ["203.0.113.10", "198.51.100.10", "2001:db8:0:2::10"]
PRIVATE_SITES = ["10.7.0.9", "169.254.169.254", "100.64.0.9"]
RESOLVERS = ["192.0.2.53", "198.51.100.53", "2001:db8:0:2::53"]
RAW = "203.0.113.20"
GIT = "203.0.113.30"
RAW_PORTS = {
    7: services.echo,
    22: services.ssh,
    25: services.smtp,
    3306: services.mysql,
    5432: services.echo,
    9000: services.bulk,
}
DATAGRAMS = [(RAW, 123), (RAW, 443), (RAW, 5353), *((site, 443) for site in SITES)]
CANARIES = [("127.0.0.1", 9999), ("::1", 9999), ("192.0.2.1", 9999), ("10.7.0.1", 9999), ("0.0.0.0", 9998)]
MODEL = ("127.0.0.1", 11434)


def internet(side, directory):
    side.count_packets(["wan", "lan"])
    with open(f"{directory}/names.json", encoding="utf-8") as table:
        names = Names(json.load(table), side.records)
    for address in RESOLVERS:
        side.udp(address, 53, names.datagrams(address))
        side.tcp(address, 53, names.visit)
    for address in SITES + PRIVATE_SITES:
        side.tcp(address, 80, services.http)
        side.tcp(address, 8080, services.http)
    tls = services.tls(f"{directory}/site.pem", f"{directory}/site.key")
    for address in SITES:
        side.tcp(address, 443, tls)
    side.tcp(GIT, 443, services.tls(f"{directory}/site.pem", f"{directory}/site.key", repository.http(directory)))
    side.tcp(GIT, 22, repository.ssh(directory))
    for port, service in RAW_PORTS.items():
        side.tcp(RAW, port, service)
    for address, port in DATAGRAMS:
        side.udp(address, port, services.echo_datagram)


def host(side, _directory):
    for address, port in CANARIES:
        side.tcp(address, port, services.canary)
    side.udp("127.0.0.1", 9999, services.echo_datagram)
    side.tcp(*MODEL, services.http)


def main():
    role, directory = sys.argv[1:]
    # Ctrl-C is for the test, whose end closes stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.alarm(LIFE)
    threading.stack_size(STACK)
    say("here")
    if os.read(sys.stdin.fileno(), 64):
        side = Side(Records(f"{directory}/{role}.jsonl"))
        {"internet": internet, "host": host}[role](side, directory)
        say("ready")
        side.run()
    # A test that was killed cannot remove it.
    if os.path.basename(directory).startswith("agentbox-internet-"):
        shutil.rmtree(directory, ignore_errors=True)
    # Without waiting for visits that go on.
    os._exit(0)


main()

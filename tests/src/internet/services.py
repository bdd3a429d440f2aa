"""What is said on each kind of port. A service has one visit from its beginning to its end."""

import json
import os
import struct
import sys

from visits import LONGEST_BODY

# The files of this network: a test lays down in `files` what is to be had below /files/.
DIRECTORY = sys.argv[2]


def canary(visit):
    """A service of the host's that nobody should reach: it says where it is, and takes what it is told."""
    visit.say(f"canary {visit.server}\n".encode())
    visit.some()


def echo_datagram(message, note):
    note()
    return [message]


def echo(visit):
    while got := visit.some():
        visit.say(got)


def ssh(visit):
    visit.say(b"SSH-2.0-world_1.0\r\n")
    echo(visit)


def smtp(visit):
    visit.say(b"220 mail.test ESMTP\r\n")
    while line := visit.until(b"\r\n"):
        word = line[:4].upper()
        if word == b"EHLO":
            visit.say(b"250-mail.test\r\n250-SIZE 1000000\r\n250 8BITMIME\r\n")
        elif word == b"QUIT":
            return visit.say(b"221 bye\r\n")
        else:
            visit.say(b"250 ok\r\n")


def mysql(visit):
    words = b"\x0a8.0.0-world\0" + struct.pack("<I", 7) + b"saltsalt\0" + b"\xff\xf7\x21\x02\0" + bytes(13)
    visit.say(struct.pack("<I", len(words))[:3] + b"\0" + words)
    while visit.some():
        pass


def bulk(visit):
    """`send N` gives that many bytes, `sink` takes all there are and says how many."""
    line = visit.until(b"\n").split()
    if line[:1] == [b"send"]:
        visit.fill(int(line[1]))
    elif line[:1] == [b"sink"]:
        count = 0
        while got := visit.some():
            count += len(got)
        visit.say(f"{count}\n".encode())


def http(visit):
    """Requests, one after another: says where it is and what it was asked for."""
    while request := take_request(visit):
        method, path, values, body, is_last = request
        if method == "POST":
            start_answer(visit, values.get("content-type", "application/octet-stream"), len(body), is_last)
            visit.say(body)
        elif path.startswith("/bytes/"):
            count = int(path[len("/bytes/") :])
            start_answer(visit, "application/octet-stream", count, is_last)
            visit.fill(0 if method == "HEAD" else count)
        elif path.startswith("/files/"):
            send_file(visit, path, method, is_last)
        else:
            said = {"host": values.get("host"), "path": path, "server": visit.server}
            said = json.dumps(said).encode() + b"\n"
            start_answer(visit, "application/json", len(said), is_last)
            visit.say(b"" if method == "HEAD" else said)
        if is_last:
            return


def send_file(visit, path, method, is_last):
    """A file that the test has laid down; of a directory its page."""
    name = path.partition("?")[0]
    name += "index.html" if name.endswith("/") else ""
    try:
        with open(os.path.join(DIRECTORY, name[1:]), "rb") as file:
            body, status = file.read(), "200 OK"
    except OSError:
        body, status = b"", "404 Not Found"
    kind = "text/html" if name.endswith(".html") else "application/octet-stream"
    start_answer(visit, kind, len(body), is_last, status)
    visit.say(b"" if method == "HEAD" else body)


def take_request(visit):
    """The next request, written down: its method, path, headers in small letters, body, and whether it is the last."""
    if not (head := visit.until(b"\r\n\r\n")):
        return None
    line, *fields = head[:-4].decode("latin-1").split("\r\n")
    headers = [[name.strip(), value.strip()] for name, _, value in (it.partition(":") for it in fields)]
    values = {name.lower(): value for name, value in headers}
    visit.note("request", line=line, host=values.get("host"), headers=headers)
    method, path, version = (line.split(" ") + ["", ""])[:3]
    is_last = values.get("connection", "").lower() == "close" or version != "HTTP/1.1"
    return method, path, values, receive_body(visit, values), is_last


def receive_body(visit, values):
    if values.get("expect", "").lower() == "100-continue":
        visit.say(b"HTTP/1.1 100 Continue\r\n\r\n")
    if values.get("transfer-encoding", "").lower() != "chunked":
        return visit.exactly(int(values.get("content-length", 0)))
    body = b""
    while line := visit.until(b"\r\n"):
        size = int(line, 16)
        body += visit.exactly(size)
        visit.until(b"\r\n")
        if size == 0 or len(body) > LONGEST_BODY:
            break
    return body


def start_answer(visit, kind, length, is_last, status="200 OK"):
    connection = "close" if is_last else "keep-alive"
    visit.say(
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
        f"Connection: {connection}\r\n\r\n".encode()
    )


def tls(certificate, key, requests=http):
    """Requests behind a greeting by TLS."""
    # Only one side of the world needs it, and it takes a while to load.
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])

    def service(visit):
        visit.greeting()
        try:
            visit.socket = context.wrap_socket(visit.socket, server_side=True)
        except OSError as error:
            return visit.note("handshake", ok=False, why=str(error))
        visit.note("handshake", ok=True, why="")
        requests(visit)

    return service

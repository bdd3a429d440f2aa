"""A repository of the world's, where a test has made one: git's own programs, by HTTPS and by a real sshd. Each runs
as whoever the repository belongs to, for one visit."""

import os
import subprocess

from services import start_answer, take_request

BACKEND = "/usr/lib/git-core/git-http-backend"
SSHD = "/usr/sbin/sshd"
# Nothing that it is asked takes longer.
PATIENCE = 60


def ssh(directory):
    def service(visit):
        # It takes the connection as inetd would give it.
        argv = [SSHD, "-i", "-e", "-f", f"{directory}/git/sshd_config"]
        as_owner(directory, argv, {}, stdin=visit.socket, stdout=visit.socket).wait(PATIENCE)

    return service


def http(directory):
    def service(visit):
        while request := take_request(visit):
            method, path, values, body, is_last = request
            path, _, query = path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": f"{directory}/git",
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": method,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REMOTE_USER": "somebody",
                "REMOTE_ADDR": "192.0.2.1",
                "CONTENT_TYPE": values.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": values.get("content-encoding", ""),
                "HTTP_GIT_PROTOCOL": values.get("git-protocol", ""),
            }
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            said, _ = as_owner(directory, [BACKEND], variables, **pipes).communicate(body, PATIENCE)
            head, _, answer = said.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            status = fields.get("Status", "200 OK")
            start_answer(visit, fields.get("Content-Type", "text/plain"), len(answer), is_last, status)
            visit.say(answer)
            if is_last:
                return

    return service


def as_owner(directory, argv, variables, **streams):
    owner = os.stat(f"{directory}/git/repo.git")
    variables = {"PATH": "/usr/bin:/bin", "HOME": f"{directory}/git", **variables}
    with open(f"{directory}/git/log", "ab") as log:
        ids = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        return subprocess.Popen(argv, env=variables, cwd="/", stderr=log, **ids, **streams)

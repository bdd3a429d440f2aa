# shellcheck shell=dash
# The machine with systemd: two ordinary users (`sub` has a range of subordinate ids, `plain` has none), each with a
# service manager, which hands each sandbox a scope. Nobody else has delegated anything to them.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin
# shellcheck source=tests/vm/guest/check.sh
. /checks/check.sh
# shellcheck source=tests/vm/guest/limits.sh
. /checks/limits.sh

# Where their state is kept.
for user in sub plain; do
  mkdir -p "/home/$user" && chown "$user:$user" "/home/$user"
done

systemd_run=systemd-run

# As the caller, in a login session of the caller's, in a service of the caller's own manager, or in one of the
# system's that runs as the caller.
launch() {
  local runtime
  runtime="Environment=XDG_RUNTIME_DIR=/run/user/$(id -u "$caller")"
  set -- -q --collect --pipe --wait "$@"
  case "$place" in
    session) "$systemd_run" -p "User=$caller" -p PAMName=login "$@" ;;
    manager) "$systemd_run" -q --collect --pipe --wait -p "User=$caller" -p "$runtime" systemd-run --user "$@" ;;
    service) "$systemd_run" -p "User=$caller" -p "$runtime" "$@" ;;
  esac
}

# In a scope of its own below the caller's manager, beside the keeper's.
sandbox_cgroup() {
  find "$top/user.slice" -path '*/app.slice/run-*.scope/agentbox-*' -type d ! -name '*-keeper'
}

# stand CALLER PLACE: who starts sandboxes from now on, and from where.
stand() {
  caller="$1" place="$2"
  echo >"$trace/trace"
}

no_scope_is_left() { same scopes "" "$(launch systemctl --user --no-legend --plain --all list-units 'run-*.scope')"; }

stand sub session
all_limits_hold "sub in a login session"
check "sub in a login session: it ends with its keeper" ends_with_its_keeper
check "sub in a login session: no scope is left" no_scope_is_left
check "sub in a login session: strict isolation starts" strict_starts

# On a machine without a session bus the manager is still to be reached.
rm /run/user/1001/bus
stand plain session
limits_hold "plain in a login session without a bus"
check "plain in a login session: strict isolation is refused" strict_is_refused id-range

stand sub manager
limits_hold "sub in a service of its own"
stand sub service
limits_hold "sub in a service of the system's"

# A manager that was killed leaves its socket behind, and here another stands in for it.
systemctl stop user@1001.service user-runtime-dir@1001.service
mkdir -m 700 /run/user/1001 && chown plain:plain /run/user/1001
systemd-run -q --unit=stale --socket-property=ListenStream=/run/user/1001/systemd/private true
systemctl stop stale.socket
stand plain service
no_limit_is_claimed "plain without a manager" "no cgroup is delegated"

# A manager may refuse.
cp /usr/bin/systemd-run /run/systemd-run
mount --bind /bin/false /usr/bin/systemd-run
systemd_run=/run/systemd-run
stand sub service
no_limit_is_claimed "sub without a scope" "no cgroup is delegated"
finish

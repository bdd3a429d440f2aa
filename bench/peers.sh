#!/usr/bin/env bash
# Installs the proxies that the gateway is measured beside: squid and tinyproxy from Debian, mitmproxy from PyPI below
# target/bench. What cannot be had takes no part in the measurement.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

missing=()
command -v squid >/dev/null || missing+=(squid)
command -v tinyproxy >/dev/null || missing+=(tinyproxy-bin)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} != 0 ] && command -v apt-get >/dev/null; then
  echo "installing: ${missing[*]}" >&2
  # Packages are only to be there, not to serve: without this they would start, now and whenever the machine does.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    echo "note: not installed: ${missing[*]}" >&2
  case " ${missing[*]} " in *" squid "*) systemctl --quiet disable squid 2>/dev/null ;; esac
fi

# One that is half made is removed again, so that it is never taken for a whole one.
peers=target/bench/peers
if [ ! -x "$peers/bin/mitmdump" ]; then
  echo "installing: mitmproxy" >&2
  mkdir -p target/bench
  rm -rf "$peers"
  { python3 -m venv "$peers" && "$peers/bin/pip" install --quiet mitmproxy; } >&2 || {
    rm -rf "$peers"
    echo "note: not installed: mitmproxy" >&2
  }
fi
exit 0

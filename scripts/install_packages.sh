#!/usr/bin/env bash
# Installs what is missing of the Debian packages that packages.txt names. Quiet and quick when nothing is.
# Usage: scripts/install_packages.sh
set -euo pipefail
list="$(dirname "${BASH_SOURCE[0]}")/../packages.txt"

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install_packages: this is not a Debian-like system (no apt-get)." >&2
  echo "  Install what corresponds to the packages in packages.txt by hand, then set RAGFS_SKIP_INSTALL=1." >&2
  [ "${RAGFS_SKIP_INSTALL:-}" = 1 ] && exit 0
  exit 1
fi

mapfile -t wanted < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$list")
mapfile -t missing < <(
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2> /dev/null \
      | sed -n 's/^installed //p' | sort -u
  )
)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "${RAGFS_SKIP_INSTALL:-}" = 1 ]; then
  echo "install_packages: RAGFS_SKIP_INSTALL=1, going on without: ${missing[*]}" >&2
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "install_packages: missing packages: ${missing[*]}" >&2
    echo "  This needs root, and there is no sudo. Run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -y -q -o DPkg::Lock::Timeout=600 "$@" > "$log" 2>&1 < /dev/null
}
echo "Installing ${#missing[@]} packages: ${missing[*]}"
# The lists of a new machine are empty or old; with fresh ones the update is not worth its seconds.
apt install --no-install-recommends "${missing[@]}" && exit 0
if apt update && apt install --no-install-recommends "${missing[@]}"; then exit 0; fi
tail -n 20 "$log" >&2
echo "install_packages: apt-get failed (above). Missing: ${missing[*]}" >&2
echo "  Check the network and the package sources, or install them by hand and run again." >&2
exit 1

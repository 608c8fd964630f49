#!/usr/bin/env bash
# Installs the Debian packages of the named groups of packages.txt that are missing or too old.
#
# usage: setup.sh [GROUP...]    groups: build (the default), lint, fuzz
#
# Does nothing, quickly, when all is there. Installs with apt-get, through sudo when not root.
set -euo pipefail

list="$(dirname "$0")/packages.txt"
groups=("${@:-build}")
say() { printf 'setup: %s\n' "$*" >&2; }

# "package floor" of each package of the groups.
wanted() {
  awk -v groups=" ${groups[*]} " '
    { sub(/#.*/, "") }
    /^\[/ { name = $1; gsub(/[][]/, "", name); on = index(groups, " " name " "); next }
    on && NF >= 2 { print $1, $2 }' "$list"
}

for group in "${groups[@]}"; do
  grep -qxF "[$group]" "$list" || { say "packages.txt has no group '$group'"; exit 2; }
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system, nothing is installed; these packages or their like are needed: $(wanted | cut -d' ' -f1 | xargs)"
  exit 0
fi

# "package version" of each one that is installed; one query for all.
installed=$(wanted | cut -d' ' -f1 | xargs dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' 2>/dev/null |
  awk '$1 == "installed" { print $2, $3 }' || true)

missing=()
while read -r package floor; do
  version=$(awk -v p="$package" '$1 == p { print $2; exit }' <<<"$installed")
  if [ -z "$version" ] || dpkg --compare-versions "$version" lt "$floor"; then
    missing+=("$package")
  fi
done <<<"$(wanted)"
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "not root and no sudo; run as root: apt-get install ${missing[*]}"
    exit 1
  fi
  as_root=(sudo)
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@" </dev/null >&2; }

say "installing ${missing[*]}"
if ! apt install -y --no-install-recommends "${missing[@]}" 2>/dev/null; then
  apt update
  if ! apt install -y --no-install-recommends "${missing[@]}"; then
    say "apt-get could not install them; Tilewright needs the versions of Debian 12 or later: ${missing[*]}"
    exit 1
  fi
fi

# A package that stays below its floor is said here, not as a riddle in the build.
for package in "${missing[@]}"; do
  floor=$(wanted | awk -v p="$package" '$1 == p { print $2; exit }')
  version=$(dpkg-query -W -f '${Version}' "$package")
  if dpkg --compare-versions "$version" lt "$floor"; then
    say "$package is $version here, at least $floor is needed (Debian 12 has it)"
    exit 1
  fi
done

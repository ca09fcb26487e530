#!/bin/sh
# Installs what the tests drive and this machine lacks, from Debian's packages; does nothing where all is there.
set -eu
# Debian keeps smtp-sink and smtp-source where only root's PATH looks.
PATH="$PATH:/usr/sbin:/sbin"

# One line a package: its name, then the programs or files that tell it is there.
packages='
redis-server redis-server redis-cli
postfix smtp-sink smtp-source
swaks swaks
libnet-ssleay-perl /usr/share/doc/libnet-ssleay-perl
openssl openssl
ca-certificates /etc/ssl/certs/ca-certificates.crt
'

# Prints the packages of which something is missing, in one line.
missing_packages() {
  echo "$packages" | while read -r package parts; do
    for part in $parts; do
      if [ ! -e "$part" ] && ! command -v "$part" >/dev/null; then
        printf '%s ' "$package"
        break
      fi
    done
  done
}

say() { echo "test-tools: $*" >&2; }

missing=$(missing_packages)
if [ -z "$missing" ]; then exit 0; fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
  else
    say "the tests need these packages, and only root can install them: $missing"
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null; then
  say "the tests need these (Debian's names), install them by hand: $missing"
  exit 1
fi

# Services of the packages must not start: only their programs are wanted. Debian asks this file before it starts one.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '$as_root rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM
  printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
  $as_root chmod 755 "$policy"
fi

say "installing $missing"
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" </dev/null >&2; }
# Without configuration postfix brings its programs and runs no mail server.
if command -v debconf-set-selections >/dev/null; then
  echo 'postfix postfix/main_mailer_type select No configuration' | $as_root debconf-set-selections
fi
apt update
# shellcheck disable=SC2086 # a list of names
apt install -y --no-install-recommends $missing

missing=$(missing_packages)
if [ -n "$missing" ]; then
  say "still missing after the installation: $missing"
  exit 1
fi

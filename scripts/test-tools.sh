#!/bin/sh
# Installs the programs that the tests drive, from Debian's packages. Does nothing if all of them are there.
# Mail servers that Debian cannot install together are unpacked, each into its own root folder, in $peers.
set -eu
cd "$(dirname "$0")/.."
# Debian keeps smtp-sink and smtp-source where only root's PATH looks.
PATH="$PATH:/usr/sbin:/sbin"

# One line per package: its name, then the programs or files that show that it is installed. The tests need all of these.
packages='
redis-server redis-server redis-cli
postfix smtp-sink smtp-source
swaks swaks
libnet-ssleay-perl /usr/share/doc/libnet-ssleay-perl
openssl openssl
ca-certificates /etc/ssl/certs/ca-certificates.crt
'
# Foreign programs that verify our signatures, score our mail, send us mail, query our name server and copy its zones, run the documentation's
# commands and show our pages.
# If one is missing, the tests that drive it are skipped.
peer_packages='
bind9-dnsutils dig
bind9-utils named-checkzone
chromium chromium
chromium-headless-shell chromium-headless-shell
curl curl
knot knotd
knot-dnsutils kdig
msmtp msmtp
nsd nsd
opendkim opendkim
sqlite3 sqlite3
rspamd rspamd
spamassassin spamassassin
python3-dkim /usr/lib/python3/dist-packages/dkim/__init__.py
libmail-dkim-perl /usr/share/perl5/Mail/DKIM.pm
unbound unbound
pebble pebble
'
# Mail servers that conflict with Debian's postfix: the root's name, its package, its programs.
unpacked='
exim exim4-daemon-light usr/sbin/exim4
opensmtpd opensmtpd usr/sbin/smtpd
'
peers=node_modules/.cache/peers
# If this script changes, the roots are made again.
made_by="$(cksum <"$0") $(uname -m)"

# Prints the packages of a list that are not completely installed, in one line.
missing_of() {
  echo "$1" | while read -r package parts; do
    for part in $parts; do
      if [ ! -e "$part" ] && ! command -v "$part" >/dev/null; then
        printf '%s ' "$package"
        break
      fi
    done
  done
}

is_unpacked() { [ "$(cat "$peers/$1/.made-by" 2>/dev/null)" = "$made_by" ]; }

# Prints the names of the missing roots.
missing_roots() {
  echo "$unpacked" | while read -r name _; do
    if [ -n "$name" ] && ! is_unpacked "$name"; then printf '%s ' "$name"; fi
  done
}

say() { echo "test-tools: $*" >&2; }

missing=$(missing_of "$packages")
wanted="$(missing_of "$peer_packages")$(missing_roots)"
if [ -z "$missing$wanted" ]; then exit 0; fi
# If the mirror cannot be reached, try once an hour.
if [ -z "$missing" ] && [ -n "$(find "$peers/.failed" -mmin -60 2>/dev/null)" ]; then
  say "tests that need these are skipped (tried within the last hour): $wanted"
  exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
  elif [ -n "$missing" ]; then
    say "the tests need these packages, and only root can install them: $missing"
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null; then
  if [ -z "$missing" ]; then
    say "without Debian's apt-get, tests that need these are skipped: $wanted"
    exit 0
  fi
  say "the tests need these (Debian's names), install them by hand: $missing"
  exit 1
fi

work=$(mktemp -d)
policy=/usr/sbin/policy-rc.d
made_policy=
clean_up() {
  rm -rf "$work"
  if [ -n "$made_policy" ]; then $as_root rm -f "$policy"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=1 \
    -o Acquire::http::Timeout=20 "$@" </dev/null >&2
}

# Prevents the packages from starting their services. Debian runs this file before it starts one.
forbid_services() {
  if [ -e "$policy" ]; then return 0; fi
  made_policy=yes
  printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
  $as_root chmod 755 "$policy"
}

install_packages() {
  say "installing $*"
  forbid_services
  # If it is not configured, postfix installs its programs and starts no mail server.
  if command -v debconf-set-selections >/dev/null; then
    echo 'postfix postfix/main_mailer_type select No configuration' | $as_root debconf-set-selections
  fi
  apt install -y --no-install-recommends "$@"
}

# Copies the shared libraries that a program in a root needs, with the loader, if the root lacks them.
copy_libraries() {
  root=$1
  libraries=$(find "$root/usr/lib" -maxdepth 1 -type d -name '*-linux-*' 2>/dev/null | tr '\n' ':')
  LD_LIBRARY_PATH="$libraries" ldd "$2" | grep -o '/[^ ]*' | while read -r library; do
    case $library in "$root"/* | "$2"*) continue ;; esac
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}

# Makes a root folder with the package, its dependencies that are not installed here, a shell, and their libraries.
unpack() {
  name=$1 package=$2 program=$3
  say "unpacking $package"
  root=$(mktemp -d "$work/root.XXXXXX")
  mkdir "$work/$name"
  depends=$(apt-get install -s --no-install-recommends "$package" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
  # If it is installed already, only the package itself is unpacked.
  if [ -z "$depends" ]; then depends=$package; fi
  # shellcheck disable=SC2086 # a list of names
  (cd "$work/$name" && apt-get -q -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root \
    download $depends </dev/null >&2) || return 1
  for archive in "$work/$name"/*.deb; do dpkg-deb -x "$archive" "$root" || return 1; done
  # Manuals and examples are three times as large as the programs.
  rm -rf "$root/usr/share" "$root/etc"
  mkdir -p "$root/bin" "$root/dev" "$root/etc" "$root/tmp"
  cp -L /bin/sh "$root/bin/sh"
  chmod 755 "$root"
  chmod 1777 "$root/tmp"
  find "$root" -type f -perm -100 >"$work/programs"
  while read -r file; do
    if ldd "$file" >/dev/null 2>&1; then copy_libraries "$root" "$file"; fi
  done <"$work/programs"
  [ -x "$root/$program" ] || return 1
  echo "$made_by" >"$root/.made-by"
  mkdir -p "$peers"
  rm -rf "${peers:?}/$name"
  cp -a "$root" "$peers/$name"
}

# Gets everything that only some tests need. Fails if something is not available.
get_peers() {
  fine=0
  more=$(missing_of "$peer_packages")
  # shellcheck disable=SC2086 # a list of names
  if [ -n "$more" ] && { [ "$(id -u)" -ne 0 ] && [ -z "$as_root" ] || ! install_packages $more; }; then fine=1; fi
  for name in $(missing_roots); do
    # shellcheck disable=SC2046 # three words
    unpack $(echo "$unpacked" | grep "^$name ") || fine=1
  done
  return $fine
}

if [ "$(id -u)" -eq 0 ] || [ -n "$as_root" ]; then
  if ! apt update && [ -n "$missing" ]; then exit 1; fi
fi
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086 # a list of names
  install_packages $missing
  missing=$(missing_of "$packages")
  if [ -n "$missing" ]; then
    say "still missing after the installation: $missing"
    exit 1
  fi
fi
if get_peers; then
  rm -f "$peers/.failed"
else
  mkdir -p "$peers"
  touch "$peers/.failed"
  say "could not be had, and tests that need these are skipped: $(missing_of "$peer_packages")$(missing_roots)"
fi

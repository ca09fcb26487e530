#!/bin/sh
# Builds the image and starts it without a Docker engine or an image registry: with Debian's buildah, in chroots, on a base
# image that debootstrap makes. Needs root, some minutes, and the packages buildah and debootstrap.
set -eu
cd "$(dirname "$0")/.."

# If empty, debootstrap's own mirror.
mirror=${DEBIAN_MIRROR:-}
base=localhost/postrider-base
image=localhost/postrider
# A chroot shares the machine's ports.
port=${PORT:-38100}
work=$(mktemp -d)
starter=

say() { echo "image: $*" >&2; }

# Keeps images and containers in the folder of this run, apart from those of the machine.
images() { buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"; }

clean_up() {
  if [ -n "$starter" ]; then stop; fi
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

in_container() { images run --isolation chroot --env PORT="$port" --env SMTP_PORT=0 "$container" -- "$@"; }

# Prints the service's pid. A chroot shares the machine's process ids, and the service is the last of the chain of children.
service() {
  pid=$starter
  while child=$(cat "/proc/$pid"/task/*/children) && [ -n "$child" ]; do pid=${child%% *}; done
  echo "$pid"
}

# Signals the service itself, because buildah passes no signal on.
stop() {
  kill -TERM "$(service)" || true
  wait "$starter" && status=0 || status=$?
  starter=
}

say "making the base image"
debootstrap --variant=minbase bookworm "$work/base" ${mirror:+"$mirror"} >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# If this machine uses a TLS proxy with its own certificate, the build does, too.
cp -r /usr/local/share/ca-certificates "$work/base/usr/local/share/"
rm -rf "$work/base/var/cache/apt" "$work/base/var/lib/apt/lists"
scratch=$(images from scratch)
images add -q "$scratch" "$work/base" / >/dev/null
images commit -q "$scratch" "$base" >/dev/null
images rm "$scratch" >/dev/null

say "building the image"
images build --isolation chroot --pull-never --format docker --build-arg "BASE=$base" -t "$image" .
images images "$image"

say "starting it"
container=$(images from --pull-never "$image")
in_container postrider serve &
starter=$!
tries=0
until in_container postrider readyz >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -ge 60 ] || ! kill -0 "$starter" 2>/dev/null; then
    say "the service does not become ready"
    exit 1
  fi
  sleep 0.5
done
grep -E "^(Name|Uid|Gid):" "/proc/$(service)/status"
in_container postrider doctor
stop
if [ "$status" -ne 0 ]; then
  say "the service ended with $status"
  exit 1
fi
say "built, started, ready, stopped"

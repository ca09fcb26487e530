#!/bin/sh
# Checks the image of `npm run release` and starts it without a Docker engine. Needs root, and the packages skopeo and jq. With
# qemu-user it also starts the image for the other processor.
set -eu
cd "$(dirname "$0")/.."

image=$(ls dist/release/postrider-*-image.tar)
# A chroot shares the machine's ports.
port=${PORT:-38100}
# How long a start may take, seconds. An emulated one takes ten.
limit=120
work=$(mktemp -d)
started=

say() { echo "image: $*" >&2; }

clean_up() {
  if [ -n "$started" ]; then kill -KILL "$started" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Runs a command in a root as a user, with /proc and /dev, as in a container. Nothing outside sees the mounts.
in_root='
  export root="$1" user="$2"; shift 2
  exec /usr/bin/unshare --mount /bin/sh -c "
    /bin/mkdir -p \$root/proc \$root/dev
    /bin/mount --rbind /proc \$root/proc
    /bin/mount --rbind /dev \$root/dev
    exec /usr/sbin/chroot --userspec=\$user \$root \"\$@\"" - "$@"
'

# Prints the field of the image's configuration for the processor.
config() { skopeo inspect --config --raw --override-arch "$1" "oci-archive:$image" | jq -r "$2"; }

# Unpacks the image for the processor into a folder.
unpack() {
  skopeo --override-arch "$1" copy --quiet "oci-archive:$image" "dir:$work/$1.dir"
  mkdir "$work/$1"
  jq -r '.layers[].digest | ltrimstr("sha256:")' "$work/$1.dir/manifest.json" | while read -r layer; do
    tar -xzpf "$work/$1.dir/$layer" -C "$work/$1" --numeric-owner
  done
  rm -r "$work/$1.dir"
}

# Starts what the configuration says, as its user, in the root; in an emulator, if one is named. Waits until it is ready, and stops it.
try() {
  arch=$1 emulator=${2:-}
  unpack "$arch"
  root=$work/$arch
  user=$(config "$arch" .config.User)
  config "$arch" '.config.Env[]' >"$work/env"
  program=/usr/local/bin/$(config "$arch" '.config.Entrypoint[0]')
  if [ -n "$emulator" ]; then
    # Its own libraries are not in the root.
    set -- "$(command -v setpriv)" "--reuid=${user%:*}" "--regid=${user#*:}" --clear-groups "$emulator" -L "$root" "$root$program"
    data=$root/data
    chmod 755 "$work"
  else
    set -- "$(command -v sh)" -c "$in_root" - "$root" "$user" "$program"
    data=/data
  fi
  # shellcheck disable=SC2046 # one word a line
  env -i $(cat "$work/env") PORT="$port" SMTP_PORT=0 DATA_DIR="$data" "$@" serve &
  started=$!
  waited=0
  until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do
    waited=$((waited + 1))
    if [ "$waited" -gt "$((limit * 2))" ] || ! kill -0 "$started" 2>/dev/null; then
      say "the service for $arch does not become ready"
      exit 1
    fi
    sleep 0.5
  done
  grep -E "^(Name|Uid|Gid):" "/proc/$started/status"
  if [ -z "$emulator" ]; then
    # The health check's command, in the same root.
    # shellcheck disable=SC2046 # two words
    env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin PORT="$port" sh -c "$in_root" - "$root" "$user" \
      $(config "$arch" '.config.Healthcheck.Test[1:][]')
  fi
  kill -TERM "$started"
  wait "$started"
  started=
  say "$arch: ready as $user, stopped"
}

own=$(dpkg --print-architecture)
for arch in amd64 arm64; do
  skopeo inspect --override-arch "$arch" "oci-archive:$image" | jq -r '"\(.Architecture) \(.Layers[])"'
  case $arch in amd64) emulator=qemu-x86_64 ;; *) emulator=qemu-aarch64 ;; esac
  if [ "$arch" = "$own" ]; then
    try "$arch"
  elif command -v "$emulator" >/dev/null; then
    try "$arch" "$(command -v "$emulator")"
  else
    say "$arch: not started, because there is no $emulator"
  fi
done

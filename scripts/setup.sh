#!/bin/sh
# Makes a fresh clone ready: the pinned Bun and the packages of bun.lock in node_modules/.
# Needs only npm or Bun. Does nothing if nothing has changed since the last run. Installs what the service runs, and
# with --tools also what checks and tests need. With --test it also installs the programs that the tests drive
# (scripts/test-tools.sh).
# Packages come from the registry that the user's npm or Bun is set to.
set -eu
cd "$(dirname "$0")/.."

stamp=node_modules/.setup
# The one home of the version is package.json.
version=$(sed -n 's/^ *"bun": *"\([0-9][0-9.]*\)".*/\1/p' package.json)
# Packages differ by platform, so a folder shared with a container is set up again.
wanted="$(cat package.json bun.lock | cksum) $(uname -sm)"
# Installed tools stay, and are brought up to date.
only_service='--production --omit=peer'
if [ -n "${1:-}" ] || [ -d node_modules/typescript ]; then
  only_service=
  wanted="$wanted with tools"
fi

say() { echo "setup: $*" >&2; }

ready() {
  [ -x node_modules/.bin/bun ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]
}

is_pinned() { [ "$("$1" --version 2>/dev/null)" = "$version" ]; }

# Prints the first file among the arguments that is the pinned Bun. The npm package `bun` holds a placeholder until
# its postinstall script has run, which npm may skip; the packages `@oven/bun-<platform>` hold the program itself.
first_pinned() {
  for candidate in "$@"; do
    if [ -x "$candidate" ] && is_pinned "$candidate"; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# shellcheck disable=SC2086 # two flags or none
install_with() { "$1" install --frozen-lockfile $only_service >&2; }

# Fetches the pinned Bun into the folder named, with npm or with a Bun that is too old to do more.
fetch_into() {
  if [ -f .npmrc ]; then cp .npmrc "$1"; fi
  if command -v npm >/dev/null; then
    say "fetching Bun $version with npm"
    npm install --prefix "$1" --ignore-scripts --include=optional --no-package-lock --no-audit --no-fund \
      --loglevel=error "bun@$version" >&2
  elif command -v bun >/dev/null; then
    say "fetching Bun $version with Bun"
    echo '{}' >"$1/package.json"
    (cd "$1" && bun add --ignore-scripts "bun@$version") >&2
  else
    say "needs npm (with Node.js) or Bun $version; install one of them"
    return 1
  fi
}

# Installs with a Bun in a temporary folder.
install_with_fetched() {
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM
  fetch_into "$folder"
  if ! fetched=$(first_pinned "$folder"/node_modules/@oven/bun-*/bin/bun*); then
    say "the registry gave no Bun $version that runs on $(uname -sm)"
    return 1
  fi
  install_with "$fetched"
}

install() {
  if command -v bun >/dev/null && bun --version >/dev/null 2>&1; then
    if install_with bun; then return 0; fi
    say "the installed Bun $(bun --version) could not do it"
  fi
  install_with_fetched
}

# If the postinstall script of `bun` was skipped, links to the program itself.
repair_bun() {
  if is_pinned node_modules/.bin/bun; then return 0; fi
  if ! program=$(first_pinned node_modules/@oven/bun-*/bin/bun*); then
    say "node_modules holds no Bun $version that runs on $(uname -sm)"
    return 1
  fi
  ln -sf "../${program#node_modules/}" node_modules/.bin/bun
}

# Installs the tools of the SDK's tests in sdk/node_modules: other runtimes, and checkers of the package.
prepare_sdk() {
  sdk_wanted="$(cat sdk/package.json sdk/bun.lock | cksum) $(uname -sm)"
  if [ "$(cat sdk/node_modules/.setup 2>/dev/null)" = "$sdk_wanted" ]; then return 0; fi
  if node_modules/.bin/bun install --cwd sdk --frozen-lockfile --ignore-scripts >&2; then
    echo "$sdk_wanted" >sdk/node_modules/.setup
  else
    say "tests of the SDK that need its packages are skipped"
  fi
}

if ! ready; then
  install
  repair_bun
  echo "$wanted" >"$stamp"
fi
if [ "${1:-}" = --test ]; then
  sh scripts/test-tools.sh
  prepare_sdk
fi

#!/bin/sh
# Makes the sessions anew after a .mlw file has changed (minutes): of all files, or of those
# named as arguments (without .mlw). Each goal is tried with cvc5, z3 and cvc4, whole and
# split; then the session is replayed once, which completes it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/config.sh"
[ $# -eq 0 ] || files="$*"
cd "$here"
for f in $files; do
  echo "$f"
  rm -rf "sessions/$f"
  python3 mksess.py "$f.mlw" "sessions/$f" -t ${SHORT:-3} -T ${LONG:-20}
  why3 replay -L . "sessions/$f" 2>/dev/null
  rm -f "sessions/$f/why3session.xml.bak"
done

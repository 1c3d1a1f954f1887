#!/bin/sh
# Replays every proof, or those of the files named as arguments (without .mlw), and prints
# for each module its goals, the provers that closed their parts, and the provers' seconds.
# Works in a copy, so the checkout is left as it is. Exit status 0: everything is proved.
# Needs Debian 12's packages why3, cvc4, cvc5, z3 (installed if missing and XTASK_STRICT=1) and python3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/config.sh"
[ $# -eq 0 ] || files="$*"
cp "$here"/*.mlw "$work/"
cp -r "$here/sessions" "$work/"
cd "$work"
bad=0
for f in $files; do
  start=$(date +%s)
  if why3 replay -L . "sessions/$f" >log 2>&1; then status=ok; else status=FAILED; bad=1; fi
  tail -1 log | grep -q 'replay OK' || { status=FAILED; bad=1; }
  python3 "$here/report.py" "$f.mlw" "sessions/$f/why3session.xml" "$status" $(($(date +%s) - start)) || bad=1
  [ $status = ok ] || tr '\r' '\n' <log | grep -v '^Progress' >&2
done
[ $bad -eq 0 ] && echo "all proved" || echo "NOT all proved" >&2
exit $bad

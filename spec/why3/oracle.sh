#!/bin/sh
# Extracts the proven algorithms to OCaml and builds the oracle from them: ./oracle, or the
# path given. Needs Debian 12's packages why3, ocaml, ocaml-findlib, libzarith-ocaml-dev
# (installed if missing and XTASK_STRICT=1). The line protocol is at the top of oracle.ml.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/oracle}
case $out in /*) ;; *) out=$PWD/$out ;; esac
have() { command -v why3 && command -v ocamlfind && ocamlfind query zarith; }
have >/dev/null 2>&1 || {
  echo "missing tools; on Debian: apt-get install why3 ocaml ocaml-findlib libzarith-ocaml-dev" >&2
  [ "${XTASK_STRICT:-}" = 1 ] || exit 2
  { apt-get update && apt-get install -y why3 ocaml ocaml-findlib libzarith-ocaml-dev; } >&2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/*.mlw "$here/oracle.drv" "$here/oracle.ml" "$work/"
cd "$work"
why3 extract --recursive -D ocaml64 -D ./oracle.drv -L . \
  rules.RuleSet walk.FrameData sizes.Interval programs.ExecShape -o core.ml
ocamlfind ocamlopt -w -a -package zarith -linkpkg core.ml oracle.ml -o "$out"

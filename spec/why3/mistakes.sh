#!/bin/sh
# Two experiments on the statements themselves, in a copy.
#   mistakes.sh          plants one mistake after another and lists goals that are no longer
#                        proved; exit status 1 if a mistake goes unnoticed
#   mistakes.sh false    adds `goal nonsense: false` to every module, or to those named in ONLY;
#                        exit status 1 if it is proved. LIMIT: seconds for each prover
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/config.sh"
provers="CVC5,1.0.3 CVC4,1.8 Z3,4.8.12"
limit=${LIMIT:-3}
cd "$work"
status=0

# fails FILE MODULE GOAL: no prover closes every part of the goal that another left open
fails() {
  for p in $provers; do
    why3 prove -L . "$1.mlw" -T "$2" -G "$3" -P "$p," -t "$limit" -a split_vc >log 2>&1 || true
    grep 'Prover result is' log >"part.$p" || cat log >&2
  done
  n=$(wc -l <"part.CVC5,1.0.3")
  for k in $(seq 1 "$n"); do
    for p in $provers; do sed -n "${k}p" "part.$p"; done | grep -q Valid || return 0
  done
  return 1
}

# plant WORDS FILE OLD NEW MODULE.GOAL...
plant() {
  words=$1 file=$2 old=$3 new=$4
  shift 4
  cp "$here"/*.mlw .
  OLD=$old NEW=$new python3 - "$file.mlw" <<'PY'
import os, sys
p = sys.argv[1]
s = open(p).read()
assert s.count(os.environ["OLD"]) >= 1, "the text to change is gone: " + os.environ["OLD"]
open(p, "w").write(s.replace(os.environ["OLD"], os.environ["NEW"], 1))
PY
  found=
  for goal in "$@"; do
    where=${goal%%/*} rest=${goal#*/}
    if fails "$where" "${rest%%.*}" "${rest#*.}"; then found="$found $rest"; fi
  done
  echo "$words: ${found:- NOTHING}"
  [ -n "$found" ] || status=1
}

if [ "${1:-}" = false ]; then
  for f in $files; do
    cp "$here"/*.mlw .
    sed -i 's/^end$/  goal nonsense: false\n\nend/' "$f.mlw"
    for m in $(sed -n 's/^module \([A-Za-z]*\).*/\1/p' "$f.mlw"); do
      case " ${ONLY:-$m} " in *" $m "*) ;; *) continue ;; esac
      for p in $provers; do
        why3 prove -L . "$f.mlw" -T "$m" -G nonsense -P "$p," -t "$limit" >log 2>&1 || true
        grep -q 'Prover result is' log || { cat log >&2; status=1; }
        if grep -q Valid log; then echo "$f.$m: false is proved by $p"; status=1; fi
      done
      [ $status -ne 0 ] || echo "$f.$m: false is not proved"
    done
  done
  exit $status
fi

plant "the maximum instead of the size rule" shapes \
  "z[k] = (if da = 1 then db else da)" "z[k] = max da db" \
  shapes/Algebra.common2_to_pair shapes/Algebra.pair_to_common2
plant "the loop takes the larger size" frame \
  "else if c = 1 && f.grow then begin" "else if c < d && f.grow then begin" \
  "frame/Resolve.settle_axis'vc"
plant "grow without stretch" frame \
  "(f.grow -> f.stretch) /\\" "" \
  frame/Frame.settles_no_clash "frame/Resolve.settle_axis'vc"
plant "a dropped axis of any size" frame \
  "if f.place[m][k] < 0 then xs[m][k] = 1" "if f.place[m][k] < 0 then true" \
  frame/Frame.settles_no_overhang
plant "the index is kept where the size is 1" frame \
  "result[k] = if p[k] < 0 || x[k] = 1 then 0 else i[p[k]] }
  = create (length x) (pure { fun k -> if p[k] < 0 || x[k] = 1 then 0 else i[p[k]] })" \
  "result[k] = if p[k] < 0 then 0 else i[p[k]] }
  = create (length x) (pure { fun k -> if p[k] < 0 then 0 else i[p[k]] })" \
  frame/FrameIndex.shows_valid
plant "the stride is kept where an axis is stretched" walk \
  "if j >= 0 && nth x k = nth z j then begin" "if j >= 0 then begin" \
  "walk/FrameData.lead'vc"
plant "PDPD puts B's axes beyond A's end on axis 0" rules \
  "if start xs axis + k < length xs[0] then start xs axis + k else -1" \
  "if start xs axis + k < length xs[0] then start xs axis + k else 0" \
  "rules/Laid.pdpd_rule'vc" "rules/Laid.pdpd_iff'vc"
plant "Paddle lays the longer onto the shorter" rules \
  "let function shorter (ra rb: int) : int = if ra < rb then 0 else 1" \
  "let function shorter (ra rb: int) : int = if ra < rb then 1 else 0" \
  "rules/Paddle.paddle'vc"
plant "axes fuse by the outer size" collapse \
  "st[j] = mul st[j + 1] z[j + 1]" "st[j] = mul st[j + 1] z[j]" \
  "collapse/Collapse.fuse_walk'vc"
plant "any axis can be dropped" collapse \
  "requires { dropped st st' j } requires { z[j] = 1 }" "requires { dropped st st' j }" \
  "collapse/Collapse.drop_walk'vc"
plant "sizes are multiplied before a 0 is looked for" checked \
  "= if has_zero s then begin" "= if false then begin" \
  "checked/Checked.checked_size'vc"
plant "an interval with 1 leaves the hull" sizes \
  "        assert { forall c. inside j c -> joins 1 c c };
        j
" "        assert { forall c. inside j c -> joins 1 c c };
        { lo = min i.lo j.lo; hi = max i.hi j.hi; endless = i.endless || j.endless }
" "sizes/Interval.join_intervals'vc"
exit $status

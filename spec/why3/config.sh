# Sourced with $here (this folder) and $work (a scratch folder) set: names what is missing
# (and installs it if XTASK_STRICT=1, as in CI), writes $work/why3.conf with the detected provers and cvc5, which Why3 1.5.1
# does not detect by itself, and points WHY3CONFIG at it.
files="shapes elements storage programs dialects frame rules names walk collapse checked sizes"
for tool in why3 cvc4 cvc5 z3; do
  command -v $tool >/dev/null || {
    echo "$tool is missing; on Debian: apt-get install why3 cvc4 cvc5 z3" >&2
    [ "${XTASK_STRICT:-}" = 1 ] || exit 2
    { apt-get update && apt-get install -y why3 cvc4 cvc5 z3; } >&2
    break
  }
done
data=$(why3 --print-datadir)
export WHY3CONFIG="$work/why3.conf"; rm -f "$WHY3CONFIG"
why3 config detect >/dev/null 2>&1
cat > "$work/cvc5.drv" <<DRV
prelude "(set-logic ALL)"
unknown "^(error \"Can't get-info :reason-unknown when the last result wasn't unknown!\")\$" "(not unknown!)"
timeout "cvc5 interrupted by timeout"
import "$data/drivers/cvc4_16.gen"
theory BuiltIn
  meta "supports_smt_get_info_unknown_reason" ""
end
DRV
# no --tlimit: it would count the clock's seconds; Why3's own limit counts the processor's, so
# that a busy machine proves what an idle one does
cat >> "$WHY3CONFIG" <<CONF

[prover]
command = "cvc5 --lang=smt2 %f"
driver = "$work/cvc5.drv"
name = "CVC5"
shortcut = "cvc5"
version = "1.0.3"
CONF
# two provers at a time unless JOBS says otherwise
sed -i "s/^running_provers_max = .*/running_provers_max = ${JOBS:-2}/" "$WHY3CONFIG"

"""`python -m simulcast.torch train.py …`: a script under guard.

The script runs as it would by itself: its arguments, its `__main__`, its traceback and its exit code. What was found is
printed at the end, on standard error unless `--output` names a file.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._watch import Watch

_FORMATS = ("text", "concise", "github", "gitlab", "sarif", "junit", "json")


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulcast.torch",
        usage="python -m simulcast.torch [OPTIONS] (SCRIPT | -m MODULE) [ARGUMENTS]",
        description="Runs a PyTorch script under guard: accidental broadcasts are found where they happen, and errors "
        "of shapes are explained. All threads are watched.",
        epilog="The exit code is the script's. With --policy SC102=deny, a finding is an exception in it, before "
        "the call is made; with SC102:confirmed=deny, once it is confirmed.",
    )
    parser.add_argument("--policy", metavar="POLICY", help="what is warned of or raised: 'SC102=deny'; by default "
                        "SIMULCAST_POLICY, or SC102=warn")
    parser.add_argument("--steps", type=int, metavar="N", help="watch the first N steps of an optimizer, and the first "
                        "batch of another size (this thread alone); by default all of the run")
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN",
                        help="files to pass over: 'transformers/*' (can be given several times)")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="how findings are printed (text)")
    parser.add_argument("--output", metavar="FILE", help="where findings go; by default standard error")
    parser.add_argument("--baseline", metavar="FILE", help="findings that are known, and are not told again")
    parser.add_argument("--write-baseline", action="store_true", help="write the findings of this run to the file of "
                        "--baseline")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module as a script, as `python -m` does")
    parser.add_argument("script", metavar="SCRIPT", help="the script, or the module's name after -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.write_baseline and given.baseline is None:
        parser.error("--write-baseline needs --baseline FILE")
    return given


def main() -> int:
    """Runs the script that `sys.argv` names, and returns its exit code."""
    given = _arguments(sys.argv[1:])
    from ._guard import guard, install, uninstall
    from ._watch import Watch

    try:
        watch = Watch(given.exclude, baseline=None if given.write_baseline else given.baseline)
        if given.steps is None:
            install(given.policy, watch=watch)
            end: Any = uninstall
        else:
            held = guard(given.policy, steps=given.steps, watch=watch)
            held.__enter__()
            end = held.__exit__
        output = open(given.output, "w", encoding="utf-8") if given.output else sys.stderr
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.argv = [given.script, *given.arguments]
    try:
        return _run(given.script, given.module, watch)
    finally:
        end()
        if given.write_baseline:
            watch.write_baseline(given.baseline)
        text = watch.report(given.format)
        if given.format == "text":
            text = f"\n{text}" if watch.findings else ""
        output.write(text)
        output.flush()
        if given.output:
            output.close()


def _run(script: str, is_module: bool, watch: Watch) -> int:
    """Runs a script or a module as `__main__`; an exception is shown as Python shows it, without frames of ours."""
    from ._raised import explain

    try:
        if is_module:
            sys.path.insert(0, os.getcwd())
            if not _is_module(script):
                print(f"error: there is no module {script}", file=sys.stderr)
                return 2
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _run_file(script)
    except SystemExit as end:
        return _exit_code(end.code)
    except BaseException as error:
        explain(error, watch)
        _strip(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return False
        raise


def _run_file(script: str) -> None:
    try:
        with open(script, "rb") as file:
            text = file.read()
    except OSError as error:
        print(f"error: cannot read the script {script}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __builtins__=__builtins__, __cached__=None)
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
    # What the script pickles, and the processes that it starts, look for `__main__`.
    sys.modules["__main__"] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    exec(compile(text, script, "exec", dont_inherit=True), module.__dict__)


def _exit_code(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _strip(error: BaseException) -> None:
    """Takes the frames of this file and of `runpy` off the start of a traceback."""
    own = {__file__, runpy.__file__, "<frozen runpy>"}
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename in own:
        found = found.tb_next
    if found is not None or isinstance(error, SyntaxError):
        error.__traceback__ = found


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:
        traceback.print_exc()
        code = 130
    sys.exit(code)

"""Reports: each format is what its readers' own schemas say, and baselines keep their meaning."""

import json
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import xmlschema
from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker
from referencing import Registry, Resource

import simulcast
from simulcast import _baseline, _suppress
from simulcast._simulcast import _report, _weigh

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "docs/reference/schemas"
FORMATS = ["text", "concise", "github", "gitlab", "sarif", "junit", "json"]

CONFIRMED = {
    "code": "SC102",
    "certainty": "confirmed",
    "message": "a column meets a row: {pred} <&> 'target' of 100%, two\nlines",
    "help": ["target[:, None] is (32, 1)", "pred[:, 0] is (32,)"],
    "file": "a folder/train: 1, ü.py",
    "line": 12,
    "end_line": 13,
    "column": 9,
    "end_column": 22,
    "snippet": "\tloss = ((pred -\n\t\ttarget) ** 2).mean()",
    "operands": ["pred", "target"],
    "fixes": [
        {"description": "use {target[:, None]}", "line": 13, "column": 3, "end_line": 13, "end_column": 9, "text": "target[:, None]"}
    ],
}
POSSIBLE = {"code": "SC104", "certainty": "possible", "message": "fits elsewhere", "file": "model.onnx", "node": "add<1>"}
DENIED = {**POSSIBLE, "code": "SC110", "denied": True, "node": "\x1b[31m\x00\ud7ff"}
ERROR = {"code": "model", "message": "bad", "file": "/elsewhere/model.onnx", "node": "n (Add)"}
LINE = {"code": "SC101", "certainty": "confirmed", "message": "grows", "file": "b.py", "line": 3, "snippet": "a - b"}
ALL = [CONFIRMED, POSSIBLE, DENIED, ERROR, LINE, LINE]


def test_sarif_is_valid_against_the_published_schema():
    schema = json.loads((HERE / "schemas/sarif-schema-2.1.0.json").read_text())
    validator = Draft7Validator(schema, format_checker=FormatChecker())
    for findings in ([], ALL, [CONFIRMED]):
        log = json.loads(_report(findings, "sarif"))
        validator.validate(log)
        run = log["runs"][0]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(rules) == len(set(rules))
        assert [rules[result["ruleIndex"]] for result in run["results"]] == [own["code"] for own in findings]
        prints = [result["partialFingerprints"]["simulcast/v1"] for result in run["results"]]
        assert len(prints) == len(set(prints))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert not validator.is_valid(log), "the schema looks"
    [result] = log["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "a%20folder/train%3A%201%2C%20%C3%BC.py"
    [rule] = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule["help"]["markdown"] and rule["fullDescription"]["text"]
    [fix] = result["fixes"]
    [replacement] = fix["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"] == {"text": "target[:, None]"}
    assert replacement["deletedRegion"] == {"startLine": 13, "startColumn": 3, "endLine": 13, "endColumn": 9}


def test_junit_is_valid_against_jenkins_schema():
    schema = xmlschema.XMLSchema(str(HERE / "schemas/junit-10.xsd"))
    for findings in ([], ALL):
        text = _report(findings, "junit")
        schema.validate(text)
        root = ElementTree.fromstring(text.encode())
        cases = root.findall("./testsuite/testcase")
        assert int(root.get("tests", "")) == len(cases) == max(len(findings), 1)
        failures = root.findall(".//failure")
        # What is only possible does not fail.
        assert int(root.get("failures", "")) == len(failures) == sum(own is not POSSIBLE for own in findings)
        for suite in root:
            assert int(suite.get("tests", "")) == len(suite)
    message = next(own.get("message", "") for own in failures if own.get("type") == "SC102")
    assert message == CONFIRMED["message"]


def test_gitlab_has_what_gitlab_documents():
    # https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format: required properties, their types
    # and the severities; a byte order mark is an error there, and so are absolute paths.
    text = _report(ALL[:3] + [LINE, LINE], "gitlab")
    assert text.startswith("[")
    issues = json.loads(text)
    assert len(issues) == 5
    for issue in issues:
        assert isinstance(issue["description"], str) and isinstance(issue["check_name"], str)
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert isinstance(issue["location"]["lines"]["begin"], int)
        assert not issue["location"]["path"].startswith(("./", "/"))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert json.loads(_report([], "gitlab")) == []


# As actions/runner reads a command: ActionCommand.TryParseV2, and the unescaping of data and properties there.
COMMAND = re.compile(r"::(?P<command>\w+) (?P<properties>.*?)::(?P<data>.*)")


def test_github_reads_back_what_was_written():
    def unescaped(text, pairs):
        for escaped, own in pairs:
            text = text.replace(escaped, own)
        return text

    data = [("%0D", "\r"), ("%0A", "\n"), ("%25", "%")]
    lines = _report(ALL, "github").splitlines()
    assert len(lines) == len(ALL)
    read = []
    for line in lines:
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        properties = dict(own.split("=", 1) for own in match["properties"].split(","))
        properties = {key: unescaped(own, [("%3A", ":"), ("%2C", ","), *data]) for key, own in properties.items()}
        read.append((match["command"], properties, unescaped(match["data"], data)))
    command, properties, text = read[0]
    assert command == "warning" and text.startswith(CONFIRMED["message"]) and "\nhelp: pred[:, 0]" in text
    assert properties == {
        "title": "Simulcast SC102 confirmed",
        "file": CONFIRMED["file"],
        "line": "12",
        "col": "9",
        "endLine": "13",
        "endColumn": "22",
    }
    assert [command for command, *_ in read] == ["warning", "notice", "error", "error", "warning", "warning"]


def test_json_is_a_document_of_its_schema():
    schemas = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema.json")}
    resources = [(name, Resource.from_contents(own)) for name, own in schemas.items()]
    validator = Draft202012Validator(schemas["findings.schema.json"], registry=Registry().with_resources(resources))
    for findings in ([], ALL):
        document = json.loads(_report(findings, "json"))
        validator.validate(document)
        assert [own["code"] for own in document["findings"]] == [own["code"] for own in findings]
    baseline = Draft202012Validator(schemas["baseline.schema.json"])
    baseline.validate(json.loads(simulcast._simulcast._Baseline.text_of(ALL)))


def test_text_is_for_people_and_their_terminals():
    text = _report(ALL, "text")
    assert "\x1b" not in text and "\x00" not in text
    assert "  12 |     loss = ((pred -\n     |            ^^^^^^^^\n" in text
    assert text.endswith("6 findings: 2 refused, 3 confirmed, 1 possible\n")
    assert _report([], "text") == "no findings\n" and _report([], "concise") == ""
    lines = _report(ALL, "concise").splitlines()
    assert len(lines) == len(ALL) and lines[1] == "model.onnx: add<1>: SC104 possible: fits elsewhere"


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        ({}, "a finding has no 'code'|a finding has no \"code\""),
        ({**LINE, "line": 0}, "count from 1"),
        ({**LINE, "line": "x"}, '"line" of a finding is x'),
        ({**LINE, "certainty": "sure"}, 'there is no certainty "sure"'),
        ({**LINE, "fixes": [{}]}, "a finding has no"),
    ],
)
def test_what_is_no_finding_is_said_clearly(finding, said):
    with pytest.raises(ValueError, match=said):
        _report([finding], "json")
    with pytest.raises(ValueError, match="there is no format \"xml\"; there are text, concise"):
        _report([], "xml")
    with pytest.raises(ValueError, match="there is no finding"):
        _weigh("SC999")


def loss(n):
    return simulcast.subtract(np.ones((n, 1)), np.ones(n))  # the place


def test_a_record_reports_each_place_once_as_certain_as_it_was():
    with simulcast.using("SC102=allow,SC102:confirmed=warn"), pytest.warns(simulcast.BroadcastWarning):
        with simulcast.record() as broadcasts:
            for n in (11, 12, 11):
                loss(n)
            simulcast.add(np.ones((6, 1)), np.ones(6))
            simulcast.add(np.ones((6, 2)), np.ones(2))
    found = json.loads(broadcasts.report("json"))["findings"]
    assert [(own["code"], own["certainty"], own["start"]["line"]) for own in found] == [
        ("SC102", "confirmed", loss.__code__.co_firstlineno + 1),
        ("SC102", "possible", found[1]["start"]["line"]),
    ]
    if sys.version_info >= (3, 11):
        assert (found[0]["start"]["column"], found[0]["end"]["column"]) == (12, 59)
        assert found[0]["operands"] == ["np.ones((n, 1))", "np.ones(n)"]
    assert found[0]["snippet"].endswith("# the place") and len(broadcasts) == 5
    again = pickle.loads(pickle.dumps(broadcasts))
    assert again == broadcasts and again.report("concise") == broadcasts.report("concise")
    with pytest.raises(ValueError, match="there is no format"):
        broadcasts.report("yaml")


def test_baselines(tmp_path):
    with simulcast.record() as broadcasts:
        simulcast.add(np.ones((21, 1)), np.ones(21))
    path = tmp_path / "known.json"
    broadcasts.write_baseline(path)
    assert [own.name for own in tmp_path.iterdir()] == ["known.json"]
    assert broadcasts.report("concise", baseline=path) == ""
    with simulcast.record() as more:
        simulcast.add(np.ones((21, 1)), np.ones(21)) * 1
    assert more.report("concise", baseline=path).count("SC102") == 1
    for text, said in [("{", "EOF while parsing"), ('{"schema": 7}', "its schema is 7, not 1"), ("\udcff", "it is no text")]:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(ValueError, match=f"known.json: not a baseline of findings: {said}"):
            broadcasts.report(baseline=path)
    with pytest.raises(OSError, match="gone.json"):
        broadcasts.report(baseline=tmp_path / "gone.json")
    with pytest.raises(OSError, match="nowhere"):
        _baseline.write(tmp_path / "nowhere" / "a.json", [])


def test_comments_are_about_their_statement(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(
        "x = (a -  # simulcast: ignore[SC102]\n"
        "     b)\n"
        "# simulcast: ignore\n"
        "y = a - b\n"
        "with f(  # simulcast: ignore\n"
        "    a):\n"
        "    z = 1; w = 2  # noqa: E702  # Simulcast: ignore [sc101 , SC104]\n"
        "    text = '# simulcast: ignore'\n"
        "    q = (a -\n"
    )
    ignored = [_suppress.ignored(str(path), line) for line in range(1, 11)]
    assert ignored == [{"SC102"}, {"SC102"}, None, None, {"all"}, {"all"}, {"SC101", "SC104"}, None, None, None]
    assert _suppress.statement(str(path), 2) == (1, 2) and _suppress.statement(str(path), 6) == (5, 6)
    assert _suppress.is_ignored(str(path), 5, "SC103") and not _suppress.is_ignored(str(path), 1, "SC101")
    assert _suppress.ignored(str(tmp_path / "gone.py"), 1) is None


SUITE = """
import numpy as np, pytest, simulcast

@pytest.mark.parametrize("n", [4, 7])
def test_loss(n):
    simulcast.subtract(np.ones((n, 1)), np.ones(n))

def test_other():
    simulcast.add(np.ones((5, 1)), np.ones(5))
    simulcast.add(np.ones((5, 1)), np.ones(5))  # simulcast: ignore[SC102]

def test_refused():
    with simulcast.strict(), pytest.raises(simulcast.BroadcastError):
        simulcast.multiply(np.ones((5, 1)), np.ones(5))
"""


def test_the_pytest_plugin_reports_at_the_end(pytester):
    file = pytester.makepyfile(SUITE)
    quiet = ["-W", "default", "-p", "no:cacheprovider"]
    run = pytester.runpytest_inprocess("--simulcast-format", "concise", *quiet)
    run.assert_outcomes(passed=4)
    name = file.name
    run.stdout.fnmatch_lines(
        [
            "*= simulcast =*",
            f"{name}:5:*SC102 confirmed: *",
            f"{name}:8:*SC102 possible: *",
            f"{name}:13:*SC102 possible: *",
        ]
    )
    pytester.runpytest_inprocess("--simulcast-format=sarif", "--simulcast-output=found.sarif", *quiet)
    assert len(json.loads((pytester.path / "found.sarif").read_text())["runs"][0]["results"]) == 3
    pytester.runpytest_inprocess("--simulcast-write-baseline=known.json", *quiet)
    known = ["--simulcast-format=text", "--simulcast-baseline=known.json", *quiet]
    pytester.runpytest_inprocess(*known).stdout.fnmatch_lines(["*= simulcast =*", "no findings"])
    usage = pytest.ExitCode.USAGE_ERROR
    assert pytester.runpytest_inprocess("--simulcast-format=xml").ret == usage
    assert pytester.runpytest_inprocess("--simulcast-output=x").ret == usage
    (pytester.path / "known.json").write_text("{")
    assert pytester.runpytest_inprocess(*known).ret == usage


@pytest.mark.parametrize("option", ["output", "write-baseline"])
def test_a_report_that_cannot_be_written_ends_the_run_at_its_start(option, tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it():\n    print('ran')\n")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", "--simulcast-format=json"]
    ran = subprocess.run([*words, f"--simulcast-{option}={tmp_path}/none/x"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 4 and "ran" not in ran.stdout and "Traceback" not in ran.stderr
    assert f"--simulcast-{option}: cannot write" in ran.stderr, ran.stderr
